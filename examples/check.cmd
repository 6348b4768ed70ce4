# Does the loop keep its budget?
rlsize check examples/unmeasured-8b.yaml --budget examples/budget.yaml --baseline examples/baseline.yaml --gpu-hour 2.50
