"""`rlsize memory`: what each tenant needs in memory, and which GPU count fits."""
