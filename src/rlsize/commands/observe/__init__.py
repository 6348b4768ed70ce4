"""`rlsize observe`: the rates of what runs, or of what was benchmarked."""
