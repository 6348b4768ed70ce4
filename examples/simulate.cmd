# What long-tailed lengths, a finite queue and weight syncs make of a fleet that matches its trainer on paper.
rlsize simulate examples/matched-loop.yaml --steps 60 --seeds 2
