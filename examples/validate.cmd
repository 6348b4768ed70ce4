# How wrong the predictions are for one's own runs, before and after calibration on one of them. The numbers are invented.
rlsize validate examples/my-runs.yaml --transfer
