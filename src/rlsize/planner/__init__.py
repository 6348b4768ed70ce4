"""WHAT TO BUY: choices among whole instances and GPUs. The only place that rounds a decision."""
