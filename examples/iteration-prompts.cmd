# 256 prompts of 8 samples are another matter: 96 s.
rlsize iteration --instances 8 --group 8 --group-seconds 3 --prompts 256 --train-seconds 5
