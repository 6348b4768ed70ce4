# A limit on the median error: the answer is no, so the exit code is 1.
# exit code 1
rlsize validate examples/my-runs.yaml --class train --max-median 3
