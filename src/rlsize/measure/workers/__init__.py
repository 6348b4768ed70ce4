"""Scripts that run under another Python, one that has torch or vLLM; they import nothing of rlsize."""
