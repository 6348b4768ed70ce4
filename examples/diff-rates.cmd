# The same fleet measured again; this time the engines were not asked for all that they can do.
rlsize diff examples/rates.yaml examples/rates-lower-bound.yaml
