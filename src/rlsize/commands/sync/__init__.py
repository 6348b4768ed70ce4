"""`rlsize sync`: how long a weight sync takes, by method and link."""
