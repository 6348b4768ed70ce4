#!/usr/bin/env bash
# GRPO of a 14B model on one node of 8 x H100-80GB: a first guess, as people write it
set -eu
MODEL=Qwen/Qwen2.5-14B-Instruct
PROMPT=1024
ANSWER=$((1024 * 3))
BUDGET=$((PROMPT + ANSWER))

engine=(
  actor_rollout_ref.rollout.name=vllm
  actor_rollout_ref.rollout.n=8
  actor_rollout_ref.rollout.tensor_model_parallel_size=2
  actor_rollout_ref.rollout.gpu_memory_utilization=0.75
)

python3 -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  actor_rollout_ref.model.path=$MODEL \
  data.train_batch_size=256 \
  data.max_prompt_length=$PROMPT \
  data.max_response_length=$ANSWER \
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \
  actor_rollout_ref.actor.use_dynamic_bsz=True \
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$((BUDGET * 4)) \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.fsdp_config.param_offload=False \
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=False \
  "${engine[@]}" \
  trainer.nnodes=1 trainer.n_gpus_per_node=8 \
  trainer.logger=console "$@"
