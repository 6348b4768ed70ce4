# With a price profile of one's own.
rlsize cost --rollout-gpus 26 --trainer-gpus 32 --price our-reserved-h100 --profiles examples/my-profiles --step-seconds 20 --batch-tokens 786432
