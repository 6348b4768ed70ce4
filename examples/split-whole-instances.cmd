# Instances of 8 GPUs cannot be cut.
rlsize split --gpus 64 --rollout-tps 2000 --learn-tps 5000 --gpus-per-instance 8
