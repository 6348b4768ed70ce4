"""`rlsize diff`: what changed between two scenarios, plans or rates files, and what that did to every result."""
