"""Launch scripts and configurations, read as facts: nothing in them is ever executed."""
