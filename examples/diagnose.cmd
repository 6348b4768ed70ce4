# Which side starves, from a training log and the rate of an instance.
rlsize diagnose examples/operate/starving.jsonl --instances 8 --per-instance 4000
