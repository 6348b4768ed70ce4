"""`rlsize export`: what a training log tells, as counters for a Prometheus."""
