# The seed case: a trainer that consumes 39,321 tokens per second, instances that generate 4,000 each.
rlsize fleet --consume 39321 --per-instance 4000
