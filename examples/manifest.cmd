# The resize as a patch.
rlsize manifest --instances 13 --gpus-per-instance 2 --platform deployment --name rollout
