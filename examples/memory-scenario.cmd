# The bill per GPU of the 32B scenario.
rlsize memory examples/grpo-32b.yaml
