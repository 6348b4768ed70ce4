"""
The edge to GPUs: real rollouts (vLLM), real train steps (torch), real weight syncs (torch.distributed).

Engines and trainers run in processes of their own, under whichever Python has them; what they need lies in `workers/`,
which imports nothing of rlsize. Results are `facts.measured`.
"""
