# The same from a scenario.
rlsize memory examples/ppo-70b.yaml
