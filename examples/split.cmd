# 64 GPUs: 48 generate, 16 train.
rlsize split --gpus 64 --rollout-tokens-per-second 2000 --trainer-tokens-per-second 6000
