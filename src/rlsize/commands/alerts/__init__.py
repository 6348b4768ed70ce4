"""`rlsize alerts`: Prometheus rules with thresholds of a plan, the tests that prove them, and a dashboard."""
