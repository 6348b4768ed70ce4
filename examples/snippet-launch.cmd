# The keys that a launch script stands for, written anew and whole; as it is it would run out of memory.
rlsize snippet examples/launch/verl-14b.sh --memory-fraction 0.6
