# Two rates and 64 GPUs: both sides keep up at 48 + 16, and no GPU more makes a step shorter.
rlsize plan --gpus 64 --rollout-tps 2000 --trainer-tps 6000 --batch-tokens 786432 --mode async,synchronous
