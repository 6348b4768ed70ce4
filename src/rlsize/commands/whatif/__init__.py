"""`rlsize whatif`: what each change of a run would do."""
