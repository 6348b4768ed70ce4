"""`rlsize measure`: rollouts, train steps and weight syncs on the GPUs at hand."""
