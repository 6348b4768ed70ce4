# A measured rate in place of the typed one: headroom covers only what the rate does not hold yet.
rlsize fleet examples/grpo-32b.yaml --per-instance examples/rates.yaml
