# A dearer GPU: the cost of a step rises by more than the budget allows. As CSV, for programs.
# exit code 1
rlsize check examples/unmeasured-8b.yaml --budget examples/budget.yaml --baseline examples/baseline.yaml --gpu-hour 2.75 --csv
