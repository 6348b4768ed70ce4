# A measurement that was saved, shown again on any laptop; this one is of a tiny model on a CPU and sizes no real fleet.
rlsize measure --show examples/measured-cpu.yaml
