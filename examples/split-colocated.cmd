# Against colocated, with 3 s of changing over per step.
rlsize split --gpus 64 --rollout-tps 2000 --trainer-tps 6000 --batch-tokens 786432 --swap-seconds 3
