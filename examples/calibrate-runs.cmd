# Two runs in different modes: what they say about the constants, and what to measure next.
rlsize calibrate examples/calibration-runs.yaml
