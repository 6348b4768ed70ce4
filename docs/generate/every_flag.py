"""
Commands that together give every flag of every command that answers, so that every key they can print is seen.

A flag that is added and not given here makes a test fail. What is left out, and why, is in `ADDS_NO_KEY`.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from generate.commands import output

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENGINES = "it is for running engines, whose answer has the keys of saved pages, and the inputs of ENGINE_INPUTS"
_KUEUE = "it is text of a manifest for Kueue"
_WORK = "it says how the work is done, not what comes out"
_FORM = "it says how the answer is shown"
_STARTS = "it says what a measurement starts or reaches, which no page can; what comes out has the keys of `--show`"

ADDS_NO_KEY: Mapping[str, str] = MappingProxyType(
    {
        "--class": "it says which records are graded",
        "--baseline": "it names a saved plan",
        "--budget": "it names a budget",
        "--buckets": "it says which rows the table of ways to sync has",
        "--ca": _ENGINES,
        "--calibration": "it says what is believed about the constants",
        "--dummy-weights": _STARTS,
        "--engine-arg": _STARTS,
        "--engines": _STARTS,
        "--engine-python": _STARTS,
        "--engine-update": "its keys are in the measurement that `--show` shows",
        "--every": _ENGINES,
        "--framework": "it says what may be searched, or whose keys are written",
        "--github": "it tells GitHub",
        "--insecure": _ENGINES,
        "--junit": "it writes a file",
        "--timeout": _ENGINES,
        "--token-file": _ENGINES,
        "--torchrun": _STARTS,
        "--replay": _STARTS,
        "--trainer-log": "what comes out has keys of `observe` and of `--show`",
        "--trainer-python": _STARTS,
        "--url": _STARTS,
        "--window": _ENGINES,
        "--rows": "it writes a file",
        "--save": "it writes a file",
        "--learn": "it writes a file",
        "--log": "it writes a file",
        "--map": "it says which key of a log a figure is read from",
        "--only": "it says which parts of the answer there are; the file that is shown has all",
        "--output": "it says where the file goes",
        "--resume": "it names what an earlier run measured",
        "--quick": "it measures for a shorter time",
        "--name": "it says what the file is called",
        "--at": _ENGINES,
        "--prometheus": _ENGINES,
        "--selector": _ENGINES,
        "--trainer-selector": _ENGINES,
        "--apply": "it writes a file",
        "--borrow": _KUEUE,
        "--cohort": _KUEUE,
        "--cpu-per-gpu": _KUEUE,
        "--memory-per-gpu": _KUEUE,
        "--rollout-label": _KUEUE,
        "--rollout-taint": _KUEUE,
        "--trainer-label": _KUEUE,
        "--trainer-taint": _KUEUE,
        "--group-index": "it says where a worker group stands",
        "--gpu-resource": "it says what pods ask for",
        "--query": "it is text of the manifest",
        "--namespace": "it is text of the manifest",
        "--record": "it writes a file",
        "--rollback": "it names a recorded observation or plan",
        "--backend": _WORK,
        "--jobs": _WORK,
        "--most-samples": _WORK,
        "--runs": "it names a file of finished runs",
        "--trace": "it writes a file",
        "--history": "it writes a file",
        "--lengths": "it names a file of lengths, whose mean is `response_tokens`",
        "--force": "it overwrites files",
        "--csv": _FORM,
        "--explain": _FORM,
        "--full": _FORM,
        "--json": _FORM,
        "--markdown": _FORM,
        "--plot": _FORM,
        "--profiles": "it says where profiles are",
        "--seed": "it says which draws are behind a band",
        "--set": "it says any key of a scenario, whose own flag is given by a line where it has one",
        "--strict": "it says what a verdict of warn counts as",
        "--write": "it names a launch to write",
    }
)

ENGINE_INPUTS = (
    "at",
    "every_seconds",
    "prometheus",
    "queue_limit_samples",
    "selector",
    "timeout_seconds",
    "trainer_selector",
    "window_seconds",
)

MEASURE_INPUTS: Mapping[str, str] = MappingProxyType(
    {
        "--concurrency": "concurrency",
        "--device": "device",
        "--dtype": "rollout_dtype",
        "--group": "group_size",
        "--kv-dtype": "kv_dtype",
        "--max-num-seqs": "max_num_seqs",
        "--max-response-tokens": "max_response_tokens",
        "--memory-fraction": "memory_fraction",
        "--micro-batch-tokens": "micro_batch_tokens",
        "--model": "model",
        "--prompt-tokens": "prompt_tokens",
        "--prompts": "prompts_per_step",
        "--receiver-ranks": "receiver_ranks",
        "--recompute": "recompute",
        "--response-cv": "response_cv",
        "--response-tokens": "response_tokens",
        "--seconds": "measurement_seconds",
        "--seed": "seed",
        "--sender-ranks": "sender_ranks",
        "--start-timeout": "start_seconds",
        "--temperature": "temperature",
        "--rollout-pipeline-parallel": "rollout_pipeline_parallel",
        "--tensor-parallel": "rollout_tensor_parallel",
        "--skip": "skipped_steps",
        "--trainer-gpus": "trainer_gpus",
    }
)
"""Flags of `measure` and the input that each of them is: a page can show a measurement, but not make one."""

_LINES = """
rlsize fleet examples/grpo-32b.yaml --instances 8 --gpu-hour 2.5
rlsize fleet --batch-tokens 786432 --train-seconds 20 --prompts 64 --group 8 --response-tokens 1536 \\
    --per-instance 4000 --headroom 0.9 --tokens-per-trained-token 1.5 --instances 8 --prompt-tokens 300 \\
    --block-size 16 --routing random --hit-ratio 0.2 --prefill-rate 20000 --gpus-per-instance 2 --trainer-gpus 32 \\
    --gpu-hour 2.5 --model qwen3-32b --gpu h100-sxm
rlsize fleet --consume 39321.6 --per-instance examples/rates-lower-bound.yaml --accept-lower-bound \\
    --rollout-gpu-hour 1.25 --trainer-gpu-hour 2.95 --params 32e9 --gpu h100-sxm
rlsize fleet --consume 39321.6 --per-instance 4000 --price nebius-h100-sxm-8x \\
    --oversampling 1.3 --kept-fraction 0.8 --dropped-fraction 0.05
rlsize split --gpus 64 --rollout-tps 2000 --trainer-tps 3000 --gpus-per-instance 8 --headroom 0.8 \\
    --batch-tokens 786432 --swap-seconds 3 --model qwen3-32b --gpu h100-sxm
rlsize split --gpus 64 --per-instance examples/rates-lower-bound.yaml --accept-lower-bound \\
    --gpus-per-instance 2 --trainer-gpus 32 --consume 39321.6 --prompts 64 --group 8 --response-tokens 1536 \\
    --tokens-per-trained-token 1.5 --params 32e9 --gpu h100-sxm
rlsize split examples/grpo-32b.yaml --train-seconds 20
rlsize split --gpus 64 --rollout-gpus 32 --trainer-gpus 32 --measured-trainer-gpus 16 --per-instance 4000 \\
    --gpus-per-instance 2 --train-seconds 40 --prompts 64 --group 8 --response-tokens 1536
rlsize split --gpus 64 --rollout-tps 2000 --trainer-tps 3000 \\
    --oversampling 1.3 --kept-fraction 0.8 --dropped-fraction 0.05
rlsize backlog examples/grpo-32b.yaml --instances 15
rlsize backlog --instances 15 --per-instance 4000 --consume 20000 \\
    --oversampling 1.3 --kept-fraction 0.8 --dropped-fraction 0.05
rlsize backlog --instances 15 --per-instance 4000 --headroom 0.9 --consume 20000 --batch-tokens 786432 \\
    --tokens-per-trained-token 1.1 --seconds 600 --max-staleness 2 --samples 512 --in-flight 800 \\
    --gpus-per-instance 2 --trainer-gpus 32 --model qwen3-32b --gpu h100-sxm
rlsize backlog --instances 15 --per-instance 4000 --consume 20000 --trainer-gpus 32 --params 32e9 --gpu h100-sxm
rlsize backlog --instances 15 --per-instance examples/rates-lower-bound.yaml --accept-lower-bound \\
    --train-seconds 20 --prompts 64 --group 8 --response-tokens 1536
rlsize sync --params 70e9 --bandwidth "50 GB/s" --dtype fp8 --method disk --efficiency 0.7 --instances 8 \\
    --tensor-parallel 4 --trainer-gpus 32 --changed-fraction 0.01 --write-bandwidth "5 GB/s" \\
    --read-bandwidth "20 GB/s" --reload-seconds 3 --hidden-seconds 1 --step-without-sync 40 --every 2 \\
    --target-share 0.04 --compare-links
rlsize sync examples/grpo-32b.yaml
rlsize sync --model qwen3-32b --link infiniband-400g --method delta --step-without-sync 40
rlsize sync --params 70e9 --gpu h100-sxm --sync-seconds 6 --step-seconds 46
rlsize sync --params 70e9 --cluster aws-p5 --step-without-sync 40
rlsize memory examples/grpo-32b.yaml
rlsize memory --model qwen3-32b --algorithm ppo --critic --reference --reward-model --critic-params 8B \\
    --reference-params 32B --reward-params 8B --optimizer adamw --gradients fp32 --fsdp 64 --trainer-gpus 64 \\
    --micro-batch-tokens 2048 --recompute full --instances 4 --rollout-tensor-parallel 4 \\
    --rollout-pipeline-parallel 1 --rollout-dtype bf16 --kv-dtype fp8 --concurrency 64 --prompt-tokens 300 \\
    --response-tokens 1536 --response-cv 0.8 --max-response-tokens 8k --prompts 64 --group 8 --old-logprob --offload \\
    --mode sync --gpus 80 --rollout-gpus 16 --gpu h100-sxm --memory-fraction 0.85
rlsize memory examples/minimum-7b.yaml --set rollout.sleep=none --set trainer.master_dtype=fp32 \\
    --set trainer.logprob_micro_batch_tokens=8192 --set trainer.padded=false --set trainer.param_offload=false \\
    --set trainer.activation_offload=false --set trainer.chunked_loss=false --set trainer.entropy=true \\
    --set rollout.max_batched_tokens=8192 --set rollout.max_model_len=2048 --set rollout.draft_tokens=2
rlsize memory --params 70e9 --algorithm grpo --zero 1 --data-parallel 8 --tensor-parallel 8 \\
    --pipeline-parallel 2 --context-parallel 1
rlsize memory --model qwen3-30b-a3b --expert-parallel 8 --fsdp 8 --lora-rank 16 --context 4000 --concurrency 8
rlsize iteration --instances 8 --group 8 --group-seconds 3 --prompts 32 --train-seconds 5 --mode colocated \\
    --sync-seconds 1 --swap-seconds 3 --gpus 32 --rollout-gpus 32 --trainer-gpus 32 --verify-seconds 2.5
rlsize iteration --instances 8 --per-instance examples/rates-lower-bound.yaml --accept-lower-bound \\
    --headroom 0.8 --response-tokens 1536 --samples 512 --train-seconds 20 --mode overlapped --rollout-gpus 32 \\
    --trainer-gpus 32 --swap-seconds 3 --verify-seconds 2.5
rlsize iteration --instances 8 --per-instance 4000 --response-tokens 1536 --samples 512 --train-seconds 20 \\
    --tokens-per-trained-token 1.5
rlsize iteration --rollout-seconds 30 --train-seconds 20 --samples 512 --verify-seconds 2.5
rlsize cost --rollout-gpus 26 --trainer-gpus 32 --train-seconds 20 --trainer-idle 0.1 --rollout-idle 0.2 \\
    --samples 512 --batch-tokens 786432 --steps 1000 --rollout-gpu-hour 2 --trainer-gpu-hour 2.95 \\
    --preemptible-fraction 0.5 --preemptible-gpu-hour 1.25 --lost-fraction 0.1
rlsize cost --rollout-gpus 26 --trainer-gpus 32 --step-seconds 20 --prompts 64 --group 8 \\
    --response-tokens 1536 --gpu-hour 2.5
rlsize cost --mode async --gpus 58 --rollout-gpus 26 --trainer-gpus 32 --step-seconds 20 --price nebius-h100-sxm-8x
rlsize predict rollout --model qwen3-32b --gpu h200-sxm --engine vllm --engine-version 0.18 --tensor-parallel 2 \\
    --pipeline-parallel 1 --data-parallel 1 --dtype bf16 --kv-dtype fp8 --memory-fraction 0.85 --max-num-seqs 256 \\
    --served --prompt-tokens 1024 --response-tokens 4096 --response-cv 0.8 --max-response-tokens 16k --prompts 64 \\
    --group 8 --routing random --block-size 16 --concurrency 64 --instances 8 --barrier
rlsize predict rollout --model qwen3-30b-a3b --gpu h200-sxm --tensor-parallel 1 --data-parallel 2 \\
    --expert-parallel 2 --samples 512 --rollout-gpus 16 --hit-ratio 0.5 --refill
rlsize predict rollout --model llama3.1-70b --gpu h100-sxm --tensor-parallel 1
rlsize predict rollout examples/grpo-32b.yaml
rlsize predict train --model qwen3-30b-a3b --gpu h100-sxm --prompts 64 --group 8 --prompt-tokens 300 \\
    --response-tokens 3200 --response-cv 0.8 --updates 2 --mini-batches 4 --zero 1 --data-parallel 4 \\
    --tensor-parallel 4 --pipeline-parallel 2 --context-parallel 2 --expert-parallel 8 --virtual-stages 2 \\
    --micro-batch-tokens 8192 --recompute selective --optimizer adamw --gradients fp32 --offload --algorithm ppo \\
    --old-logprob --reference --critic --reward-model --dtype fp8 --fp8-scaling row --compiled \\
    --async-tensor-parallel --native-attention
rlsize predict train --model qwen3-8b --gpu h100-sxm --mode sync --gpus 32 --rollout-gpus 16 --trainer-gpus 16 \\
    --fsdp 16 --lora-rank 16 --samples 512 --response-tokens 3200 --max-response-tokens 16k
rlsize predict sync --model qwen3-32b --gpu h100-sxm --transport nccl-broadcast --dtype fp8 --trainer-gpus 16 \\
    --rollout-gpus 16 --gpus-per-instance 2 --mode async --gpus 32 --tensor-parallel 2 --bucket "2 GB"
rlsize predict step --model qwen3-8b --gpu h100-sxm --mode async --gpus 32 --rollout-gpus 16 --trainer-gpus 16 \\
    --max-staleness 1 --transport nccl-broadcast --prompts 64 --group 8 --prompt-tokens 300 --response-tokens 3200 \\
    --response-cv 0.8 --max-response-tokens 16k --updates 1 --mini-batches 1 --engine vllm --engine-version 0.18 \\
    --max-num-seqs 256 --rollout-tensor-parallel 1 --rollout-pipeline-parallel 1 --rollout-data-parallel 1 \\
    --rollout-expert-parallel 1 --rollout-dtype bf16 --kv-dtype bf16 --memory-fraction 0.9 --zero 3 \\
    --data-parallel 16 --tensor-parallel 1 --pipeline-parallel 1 --context-parallel 1 --expert-parallel 1 \\
    --micro-batch-tokens 16k --recompute full --optimizer adamw --gradients bf16 --offload --dtype bf16 --compiled \\
    --native-attention --algorithm grpo --old-logprob --reference --critic --reward-model --overhead-seconds 10
rlsize predict step --model qwen3-8b --gpu h100-sxm --mode colocated --gpus 32 --samples 512 --response-tokens 3200 \\
    --fsdp 32 --lora-rank 16
rlsize predict step examples/unmeasured-8b.yaml --turns 8 --turn-end-fraction 0.1 --tool-seconds 5 --tool-cv 1 \\
    --tool-tokens 100 --environments 128 --environment-seconds 5 --failed-fraction 0.01 --verify-seconds 1 \\
    --verify-cv 0.5 --verify-failed-fraction 0.01 --verify-workers 32 --redundant-samples 2
rlsize simulate --mode async --max-staleness 2 --late-samples drop --queue-order completion --queue-steps 3 \\
    --prompts 16 --group 4 --prompt-tokens 300 --response-tokens 1000 --response-cv 1 --max-response-tokens 8k \\
    --length-distribution gamma --group-correlation 0.3 --length-drift 0.2 --instances 4 --gpus-per-instance 2 \\
    --trainer-gpus 8 --routing affine --per-instance 4000 --concurrency 16 --kv-cache-tokens 100k \\
    --train-seconds 5 --sync-seconds 1 --sync-every 2 --sync-way in-flight --kv-after-sync kept \\
    --kept-fraction 0.8 --micro-batches 4 --turns 3 --tool-seconds 5 --tool-cv 1 --tool-tokens 100 \\
    --turn-end-fraction 0.1 --environments 200 --environment-seconds 5 --failed-fraction 0.01 --redundant-samples 1 \\
    --verify-seconds 1 --verify-cv 0.5 --verify-failed-fraction 0.01 --verify-workers 32 \\
    --straggler-fraction 0.25 --straggler-slowdown 1.5 \\
    --losses-per-hour 2 --lost-together 2 --redealing running --overhead-seconds 1 \\
    --notice-seconds 10 --restart-seconds 60 --failures-per-hour 2 \\
    --trainer-restart-seconds 30 --checkpoint-every 4 --lent-instances 1 --lend-seconds 1 --gpu-hour 2.5 \\
    --steps 20 --seeds 2
rlsize simulate --mode partial --oversampling 1.5 --late-samples continue --prompts 16 --group 4 \\
    --response-tokens 1000 \\
    --max-response-tokens 8k --instances 4 --step-fixed "10 ms" --step-sample "50 us" --step-kv-token "0.01 us" \\
    --step-prompt-token "20 us" --train-seconds 5 --swap-seconds 2 --rollout-gpus 8 --gpus-per-instance 2 \\
    --trainer-gpus 8 --rollout-gpu-hour 1.25 --trainer-gpu-hour 2.95 --steps 10 --seeds 1
rlsize simulate --mode async --prompts 16 --group 4 --response-tokens 1000 --instances 4 --per-instance 2000 \\
    --more-instances "2 slowdown=2" --train-seconds 5 --steps 5 --seeds 1
rlsize simulate --mode sync --prompts 16 --group 4 --response-tokens 1000 --instances 4 \\
    --step-points "1=9ms,16=14ms" --resizes "3=+2" --train-seconds 5 --steps 5 --seeds 1
rlsize simulate examples/unmeasured-8b.yaml --model qwen3-8b --gpu h100-sxm --price nebius-h100-sxm-8x \\
    --gpus 32 --rollout-gpus 16 --trainer-gpus 16 --steps 5 --seeds 1
rlsize simulate --per-instance examples/rates-lower-bound.yaml --accept-lower-bound --prompts 16 --group 4 \\
    --response-tokens 1000 --instances 4 --train-seconds 5 --steps 20 --seeds 1 --sweep mode=sync,async \\
    --sweep instances=2:4
rlsize check examples/unmeasured-8b.yaml --budget examples/budget.yaml --baseline examples/baseline.yaml \\
    --gpu-hour 2.5 --rollout-gpu-hour 1.25 --trainer-gpu-hour 2.95 --steps 1000
rlsize check examples/unmeasured-8b.yaml --budget examples/budget.yaml --baseline examples/baseline.yaml \\
    --price nebius-h100-sxm-8x --steps 1000
rlsize plan --model qwen3-0.6b --gpu l4 --gpus 16 --objective time --steps-per-day 10 --finish-by "90 days" \\
    --memory-margin 0.02 --mode colocated,async --rollout-gpus 4,8 --trainer-gpus 4,8 --max-staleness 1 \\
    --transport nccl-broadcast --rollout-tensor-parallel 1 --rollout-data-parallel 1 --tensor-parallel 1 \\
    --rollout-pipeline-parallel 1 \\
    --pipeline-parallel 1 --context-parallel 1 --expert-parallel 1 --recompute full --micro-batch-tokens 8k \\
    --prompts 16 --group 8 --samples 128 --prompt-tokens 300 --response-tokens 1k --response-cv 0.8 \\
    --max-response-tokens 4k --engine vllm --rollout-dtype bf16 --algorithm grpo --optimizer adamw --offload \\
    --gpu-hour 0.8 --steps 100 --simulate 2
rlsize plan --gpus 32 --per-instance 4000 --gpus-per-instance 2 --headroom 0.9 --train-seconds 20 \\
    --measured-trainer-gpus 16 --sync-seconds 1 --overhead-seconds 1 --prompts 64 --group 8 --response-tokens 1536 \\
    --whole-nodes --rollout-gpu-hour 1.25 --trainer-gpu-hour 2.95
rlsize plan --gpus 32 --rollout-tps 2000 --trainer-tps 6000 --batch-tokens 786432 --price nebius-h100-sxm-8x \\
    --budget examples/budget.yaml --steps 1000
rlsize plan --gpus 32 --per-instance examples/rates-lower-bound.yaml --accept-lower-bound --gpus-per-instance 2 \\
    --consume 20000 --measured-trainer-gpus 16 --prompts 64 --group 8 --response-tokens 1536
rlsize plan --model qwen3-8b --rollout-pool l40s:16:0.9 --trainer-pool h100-sxm:8:2.5 --gpu h100-sxm --prompts 32 \\
    --group 8 --response-tokens 1k --recompute full --context-parallel 1
rlsize plan --model qwen3-8b --gpu h100-sxm --gpus 16 --prompts 32 --group 8 --response-tokens 1k --recompute full \\
    --context-parallel 1 --updates 1 --mini-batches 1 --engine vllm --engine-version 0.18 --kv-dtype bf16 \\
    --memory-fraction 0.9 --max-num-seqs 256 --gradients bf16 --lora-rank 16 --dtype bf16 --compiled \\
    --native-attention --old-logprob --reference --critic --reward-model
rlsize plan examples/grpo-32b.yaml
rlsize plan --model llama3.1-70b --gpu l4 --gpus 4 --prompts 16 --group 8 --response-tokens 1k
rlsize report examples/unmeasured-8b.yaml --output FOLDER/review.html --title Review --question "How many?" \\
    --model qwen3-0.6b --gpu l4 --gpus 16 --objective cost --steps-per-day 10 --finish-by "90 days" --steps 100 \\
    --budget examples/budget.yaml --memory-margin 0.02 --mode colocated,async --max-staleness 1 \\
    --transport nccl-broadcast --simulate 1 --gpu-hour 0.8
rlsize report examples/unmeasured-8b.yaml --output FOLDER/pools.html --rollout-pool l40s:16:0.9 \\
    --trainer-pool h100-sxm:8:2.5 --rollout-gpu-hour 1.25 --trainer-gpu-hour 2.95
rlsize report examples/unmeasured-8b.yaml --output FOLDER/priced.html --price nebius-h100-sxm-8x --mode async
rlsize report examples/unmeasured-8b.yaml --output FOLDER/said.html --mode async --rollout-gpus 16 \\
    --rollout-pipeline-parallel 1 \\
    --trainer-gpus 16 --whole-nodes --prompts 32 --group 8 --samples 256 --prompt-tokens 300 --response-tokens 1k \\
    --response-cv 0.8 --max-response-tokens 4k --updates 1 --mini-batches 1 --engine vllm --engine-version 0.18 \\
    --rollout-dtype bf16 --kv-dtype bf16 --memory-fraction 0.9 --max-num-seqs 256 --rollout-tensor-parallel 1 \\
    --rollout-data-parallel 1 --optimizer adamw --gradients bf16 --lora-rank 16 --offload --dtype bf16 --compiled \\
    --native-attention --tensor-parallel 1 --pipeline-parallel 1 --context-parallel 1 --expert-parallel 1 \\
    --recompute full --micro-batch-tokens 8k --algorithm grpo --old-logprob --reference --critic --reward-model
rlsize report examples/grpo-32b.yaml --output FOLDER/measured.html --per-instance examples/rates-lower-bound.yaml \\
    --accept-lower-bound --gpus-per-instance 2 --headroom 0.9 --consume 20000 --measured-trainer-gpus 16 \\
    --sync-seconds 1 --overhead-seconds 1
rlsize report examples/grpo-32b.yaml --output FOLDER/typed.html --rollout-tps 2000 --trainer-tps 6000 \\
    --batch-tokens 786432 --train-seconds 20
rlsize diff examples/unmeasured-8b.yaml examples/longer-8b.yaml --of step_seconds --gpu-hour 2.5 \\
    --rollout-gpu-hour 1.25 --trainer-gpu-hour 2.95 --steps 1000
rlsize diff examples/rates.yaml examples/rates-lower-bound.yaml --scenario examples/grpo-32b.yaml \\
    --accept-lower-bound --price nebius-h100-sxm-8x
rlsize diff examples/baseline.yaml examples/baseline.yaml
rlsize validate examples/my-runs.yaml --transfer --max-median 3 --max-p90 50
rlsize validate examples/my-runs.yaml --save FOLDER/board.yaml
rlsize validate examples/my-runs.yaml --baseline FOLDER/board.yaml
rlsize validate --record FOLDER/own.yaml examples/launch/distil-3b.log examples/launch/distil-3b.sh \\
    --set cluster.gpu=a800-sxm
rlsize observe --pages examples/metrics/first.prom examples/metrics/second.prom --seconds 60 --group 8 \\
    --max-num-seqs 256 --gpus-per-instance 2
rlsize observe examples/operate/starving.jsonl --format verl --skip 2 --instances 8 --rollout-gpus 16 \\
    --trainer-gpus 16 --gpu-hour 2.5 --rollout-gpu-hour 2 --trainer-gpu-hour 3 --record FOLDER/before.yaml
rlsize observe examples/operate/starving.jsonl --price nebius-h100-sxm-8x
rlsize observe examples/operate/bench.json --concurrency 64 --prompt-share 0.1 --gpus-per-instance 2
rlsize diagnose examples/operate/resized.jsonl --pages examples/metrics/first.prom examples/metrics/second.prom \\
    --seconds 60 --group 8 --max-num-seqs 256 --consume 39321 --per-instance examples/rates-lower-bound.yaml \\
    --accept-lower-bound --headroom 0.9 --tokens-per-trained-token 1.2 --train-seconds 20 --instances 13 \\
    --gpus-per-instance 2 --rollout-gpus 26 --trainer-gpus 16 --gpu-hour 2.5 --rollout-gpu-hour 2 \\
    --trainer-gpu-hour 3 --max-idle 0.05 --max-sync 0.1 --max-staleness 2 --format verl --skip 2 \\
    --fail-on worse --before FOLDER/before.yaml
rlsize diagnose examples/operate/starving.jsonl --price nebius-h100-sxm-8x
rlsize diagnose examples/operate/slow.jsonl --set model=qwen2.5-3b --set cluster.gpu=a800-sxm --set cluster.gpus=4 \\
    --set placement.mode=colocated --set workload.prompts_per_step=64 --set workload.group_size=8 \\
    --set trainer.micro_batch_samples=1 --gpu-hour 2
rlsize alerts examples/baseline.yaml --engine vllm --trainer-selector 'job="trainer"' --metric queue=my_queue \\
    --kubernetes --label release=prometheus --name loop
rlsize alerts examples/baseline.yaml --engine-only --grafana
rlsize alerts examples/grpo-32b.yaml --per-instance examples/rates-lower-bound.yaml --accept-lower-bound \\
    --gpus-per-instance 2 --train-seconds 20
rlsize manifest --platform keda --instances 13 --gpus-per-instance 2 --rollout-gpus 26 --trainer-gpus 16 \\
    --gpus-per-node 8 --engine vllm --concurrency 64 --name rollout --namespace rl --min 13 --max 16 \\
    --prometheus http://prometheus:9090 --selector 'job="rollout"' --threshold 64 --target deployment
rlsize manifest --platform raycluster --instances 13 --gpus-per-instance 2 --gpus-per-pod 2 --group rollout
rlsize snippet examples/baseline.yaml --framework verl --variant separate-async --mode async --instances 16 \\
    --gpus-per-instance 1 --rollout-tensor-parallel 1 --rollout-gpus 16 --trainer-gpus 16 --gpus-per-node 8 \\
    --engine vllm --max-staleness 8 --sync-every 1 --prompts 64 --group 8 --mini-batches 1
rlsize measure --show examples/measured-cpu.yaml
rlsize calibrate examples/measured-cpu.yaml --link infiniband-400g
rlsize calibrate examples/measured-cpu.yaml --bandwidth "50 GB/s"
rlsize calibrate examples/grpo-32b.yaml --rate 64=2100 --step-seconds 60 --generation-seconds 20 --train-seconds 20 \\
    --sync-seconds 3
rlsize calibrate examples/launch/distil-3b.log examples/launch/distil-3b.sh \\
    --set cluster.gpu=a800-sxm
rlsize whatif --model qwen3-8b --gpu h100-sxm --mode async --gpus 32 --rollout-gpus 16 --trainer-gpus 16 \\
    --max-staleness 1 --transport nccl-broadcast --prompts 64 --group 8 --prompt-tokens 300 --response-tokens 3200 \\
    --response-cv 0.8 --max-response-tokens 16k --updates 1 --mini-batches 1 --algorithm grpo --old-logprob \\
    --reference --critic --reward-model --gpu-hour 2.5 --rollout-gpu-hour 2 --trainer-gpu-hour 3 \\
    --base rollout.routing=affine --set rollout.kv_dtype=fp8 --other-gpu h200-sxm --own-only
rlsize whatif --model qwen3-8b --gpu h100-sxm --mode colocated --gpus 8 --samples 512 --response-tokens 1000 \\
    --price nebius-h100-sxm-8x
rlsize profiles list
rlsize profiles show h100-sxm --kind gpu
rlsize profiles show qwen3-32b
rlsize profiles show infiniband-400g
rlsize profiles show aws-p5
rlsize profiles show nebius-h100-sxm-8x
rlsize profiles check examples/my-profiles
rlsize profiles add-model examples/my-model/config.json --output FOLDER
rlsize explain
rlsize explain matched_instances
"""
LINES = tuple(re.sub(r" \\\n +", " ", _LINES).strip().splitlines())
_REVIEWS = "rlsize report examples/unmeasured-8b.yaml "


@cache
def answers() -> tuple[dict[str, Any], ...]:
    """What each command prints as JSON; reviews that search take ten times as long as others and add no key."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [line.replace("FOLDER", folder) for line in LINES if not line.startswith(_REVIEWS)]
        return tuple(_object(output(f"{line} --json", exit_code=None)) for line in asked)


def keys(answer: Mapping[str, Any], part: str) -> set[str]:
    """The keys of one part of an answer: `inputs`, `results`, or the columns of its `rows`."""
    if part != "rows":
        return set(answer[part])
    return {key for rows in answer["rows"].values() for row in rows for key in row}


def flags(command: str) -> set[str]:
    """The flags that the lines of a command give, such as those of `rlsize fleet`, and those of a measurement."""
    given = {word for line in LINES if line.startswith(f"{command} ") for word in shlex.split(line)}
    return given | (set(MEASURE_INPUTS) if command == "rlsize measure" else set())


def _object(text: str) -> dict[str, Any]:
    """The JSON object in what a command printed, without the warnings around it."""
    found: dict[str, Any] = json.loads(text[text.index("{\n") : text.rindex("\n}") + 2])
    return found
