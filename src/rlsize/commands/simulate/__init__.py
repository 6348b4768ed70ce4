"""`rlsize simulate`: the loop played over time."""
