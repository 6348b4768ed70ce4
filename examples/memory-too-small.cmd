# 32B on four GPUs: the answer is no, and says what would fit.
# exit code 1
rlsize memory --model qwen3-32b --gpu h100 --fsdp 4
