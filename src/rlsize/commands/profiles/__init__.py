"""`rlsize profiles`: the GPUs, links, models, prices and clusters that rlsize knows."""
