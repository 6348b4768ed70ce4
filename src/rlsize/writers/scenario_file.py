"""The commented scenario that `rlsize init` writes."""

from __future__ import annotations

STARTER = """\
# yaml-language-server: $schema=./{schema}
# What is planned. Every field is optional; a command says which one it lacks.
# Quantities carry units: 80 GB, 400 Gb/s, 16k, 20 s. Rates and times may carry a spread: 20 ± 2.
rlsize: {{kind: scenario, version: 1}}

model: qwen3-32b                      # a profile, the path of a config.json, or {{params: 70B}}
cluster: {{gpu: h100-sxm, gpus: 64, gpus_per_node: 8, interconnect: infiniband-400g}}

algorithm:
  name: grpo                          # ppo adds a critic
  reference: true                     # a frozen copy for the KL term
  tokens_generated_per_trained_token: 1.0   # over 1 with over-sampling, filtered groups or dropped samples

workload:                             # one optimizer step
  prompts_per_step: 64
  group_size: 8                       # samples of one prompt
  prompt_tokens: 300
  response_tokens: {{mean: 1536, cv: 0.8, max: 8k}}

placement: {{mode: async, max_staleness: 2, trainer_gpus: 16}}

rollout:
  engine: vllm
  tensor_parallel: 2                  # GPUs of one instance
  memory_fraction: 0.9
  routing: affine                     # a group stays on one instance, so its prompt is prefilled once

trainer:
  parallelism: {{fsdp: 16}}
  optimizer: adamw
  gradients: bf16                     # fp32 gradients make 18 bytes a parameter of 16
  recompute: full

weight_sync: {{transport: nccl-broadcast, every: 1, link: infiniband-400g}}

rates:                                # measured; `rlsize observe URL... --save rates.yaml` writes the first
  instance_tokens_per_second: 4000    # response tokens per second of one instance, or a rates file
  train_seconds: 20                   # busy trainer seconds per optimizer step, without waiting and sync

# prices: {{gpu_hour: 2.5, as_of: 2026-11, region: any}}   # no price is ever assumed
"""


def starter_scenario(schema_name: str) -> str:
    """
    A commented scenario to start from.

    Args:
        schema_name: Name of the JSON Schema file beside it, for editors that complete and check.
    """
    return STARTER.format(schema=schema_name)
