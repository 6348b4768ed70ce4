# The same, taken anyway: the true match is so many instances or fewer.
rlsize fleet --consume 39321.6 --per-instance examples/rates-lower-bound.yaml --accept-lower-bound
