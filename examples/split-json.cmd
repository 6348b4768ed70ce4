# The split for a program.
rlsize split --gpus 64 --rollout-tps 2000 --learn-tps 6000 --json
