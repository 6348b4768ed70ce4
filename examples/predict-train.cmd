# How long the trainer works on a step, and where the time goes.
rlsize predict train examples/unmeasured-8b.yaml
