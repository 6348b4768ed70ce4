# A training log: phases, rates and what was set apart.
rlsize observe examples/operate/starving.jsonl
