# Measured beside predicted. This sync went through the memory of one machine: a warning doubts that it was InfiniBand.
rlsize calibrate examples/measured-cpu.yaml --link infiniband-400g
