# How long a weight sync takes by each class of transport, with wide bands until one is measured.
rlsize predict sync examples/unmeasured-8b.yaml
