# The queue that a staleness budget of two steps allows, and the stall that it absorbs.
rlsize backlog --instances 15 --per-instance 4000 --consume 39321.6 --batch-tokens 786432 --max-staleness 2 --samples 512 --in-flight 800
