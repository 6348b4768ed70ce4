# Longer responses on more GPUs: what does a step cost now, and which change made it so?
rlsize diff examples/unmeasured-8b.yaml examples/longer-8b.yaml --gpu-hour 2.5
