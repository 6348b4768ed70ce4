# The rate of an instance from a benchmark's result.
rlsize observe examples/operate/bench.json --gpus-per-instance 2
