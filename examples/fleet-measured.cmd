# The rate and the trainer's consumption as `rlsize measure` found them, on a tiny model and a CPU: no real fleet.
rlsize fleet --per-instance examples/measured-cpu.yaml
