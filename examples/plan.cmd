# Which mode, split and layouts are best for a loop without rates, judged beside the one that the scenario has.
rlsize plan examples/unmeasured-8b.yaml --gpu-hour 2.50
