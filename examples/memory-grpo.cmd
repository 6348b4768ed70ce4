# 70B, GRPO with a reward model: 1,540 GB without KV cache.
rlsize memory --params 70e9 --algorithm grpo --reward-model
