# A rate that is only a lower bound is refused: sizing from demand ratchets the fleet upwards.
# exit code 2
rlsize fleet --consume 39321.6 --per-instance examples/rates-lower-bound.yaml
