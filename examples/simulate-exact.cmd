# Constant lengths and rates: the closed form's 18.6 % of idle trainer, to the last digit.
rlsize simulate --mode one-step-off --instances 8 --per-instance 4000 --concurrency 64 --prompts 64 --group 8 --response-tokens 1536 --length-distribution constant --train-seconds 20 --steps 20 --seeds 1
