# What somebody knows by heart: a rate of one instance, and the time of a train step.
rlsize calibrate examples/grpo-32b.yaml --rate 128=4000 --train-seconds 20
