# Measured over predicted. This sync went through the memory of one machine, so its factor says nothing of InfiniBand.
rlsize calibrate examples/measured-cpu.yaml --link infiniband-400g
