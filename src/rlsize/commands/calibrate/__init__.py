"""`rlsize calibrate`: what measurements say about the constants of the predictions."""
