# Recover throughput first: the hit ratio is 0.2 where 0.84 is expected.
rlsize fleet examples/grpo-32b.yaml --hit-ratio 0.2 --prefill-rate 20000
