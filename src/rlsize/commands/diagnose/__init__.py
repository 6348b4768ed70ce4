"""`rlsize diagnose`: which side of a running loop starves."""
