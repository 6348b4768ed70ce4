#!/usr/bin/env bash
# GRPO of a 3B agent on 4 GPUs of one node, with a much larger teacher as its reference. Its log, distil-3b.log, has
# figures of a published run: github.com/jianghoucheng/Agent_On_Policy_Distillation, wandb/run-20251130_194146-f6sves9c
set -eu

python3 -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_batch_size=32 \
  data.max_prompt_length=2048 \
  data.max_response_length=8096 \
  actor_rollout_ref.model.path=Qwen/Qwen2.5-3B-Instruct \
  actor_rollout_ref.actor.ppo_mini_batch_size=8 \
  actor_rollout_ref.actor.use_dynamic_bsz=True \
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=10144 \
  actor_rollout_ref.actor.ulysses_sequence_parallel_size=4 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.fsdp_config.param_offload=True \
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=True \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.n=16 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=4 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  trainer.nnodes=1 trainer.n_gpus_per_node=4 \
  trainer.logger=console "$@"
