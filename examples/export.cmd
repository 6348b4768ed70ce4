# A training log as a page for Prometheus.
rlsize export examples/operate/starving.jsonl --once
