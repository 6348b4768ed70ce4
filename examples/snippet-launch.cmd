# The keys that a launch script stands for, written anew and whole.
rlsize snippet examples/launch/verl-14b.sh
