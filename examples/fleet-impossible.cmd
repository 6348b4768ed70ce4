# A trainer that would need more than the GPUs' peak is refused.
# exit code 2
rlsize fleet --consume 400000 --per-instance 4000 --model qwen3-32b --gpu h100 --trainer-gpus 8
