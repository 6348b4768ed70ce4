# How quickly an engine generates that nobody has measured, and how long the samples of a step take.
rlsize predict rollout examples/unmeasured-8b.yaml
