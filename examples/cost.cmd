# What a step, a sample and a run cost, rollouts preemptible.
rlsize cost --rollout-gpus 26 --trainer-gpus 32 --rollout-gpu-hour 1.25 --trainer-gpu-hour 2.95 --step-seconds 20 --batch-tokens 786432 --samples 512 --steps 1000
