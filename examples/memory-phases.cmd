# A 7B model on two shared GPUs, phase by phase: full, and it runs.
rlsize memory examples/minimum-7b.yaml
