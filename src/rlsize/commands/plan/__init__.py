"""`rlsize plan`: which mode, split and layouts are best, and what stands around the choice."""
