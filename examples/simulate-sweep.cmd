# A grid: the same samples at every point.
rlsize simulate examples/matched-loop.yaml --steps 40 --seeds 2 --sweep max_staleness=0:3 --sweep mode=async
