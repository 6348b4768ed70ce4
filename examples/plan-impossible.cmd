# A 70B model on half a node: no plan, how many GPUs would make one possible, and what came nearest.
# exit code 1
rlsize plan --model llama3.1-70b --gpu h100-sxm --gpus 4 --prompts 64 --group 8 --prompt-tokens 300 --response-tokens 2k
