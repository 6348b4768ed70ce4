"""`rlsize check`: a loop judged by its budget, for people and for CI."""
