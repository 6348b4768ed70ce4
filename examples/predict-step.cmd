# The whole step by mode, with what a loop adds and no phase contains.
rlsize predict step examples/unmeasured-8b.yaml
