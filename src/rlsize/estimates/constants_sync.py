"""
The constants of predicted weight syncs, by class of transport.

Spreads are set so that 80 % bands hold about 80 % of the updates of a source, a stack or a generation of GPUs that the
centres were not fitted on (54 updates of 12 sources). Stacks differ most by how they broadcast: verl takes 2 to 13
times as long as others, Miles a fifth.
"""

from __future__ import annotations

from rlsize.estimates.constants import Basis, Constant, Stage

_ENGINE = "MoonshotAI/checkpoint-engine@59a3c4ffa2e1:README.md, benchmark, 6 rows each"
_REFIT = (
    "NVIDIA-NeMo/RL issue 959 and pull requests 449 and 3294, slime weight-sync blog (final stage): "
    "8B to 235B, colocated; a run of 1B on a B200 node (sunbc0120/b200-nemo-rl)"
)
_RESHARD = "NVIDIA-NeMo/RL pull request 2971, 6 rows in bf16"


def _fixed(name: str, value: float, spread: float, source: str) -> Constant:
    meaning = f"time of an update by {name.replace('_', ' ')} whatever its size"
    basis: Basis = "assumed" if source.startswith("assumed") else "fitted"
    return Constant(f"sync_fixed_{name}", value, spread, "s", basis, meaning, source)


def _rate(name: str, value: float, spread: float, source: str) -> Constant:
    meaning = f"bytes of an update by {name.replace('_', ' ')} that trainer and engine get through, links aside"
    basis: Basis = "assumed" if source.startswith("assumed") else "fitted"
    return Constant(f"sync_rate_{name}", value, spread, "B/s", basis, meaning, source)


STAGE = Stage(
    name="sync",
    noise=0.2,
    constants=(
        Constant("sync_link_share", 0.75, 0.2, "1", "kernels",
                 "share of a link's bandwidth that large transfers reach",
                 "NCCL collectives of 512 MiB on Hopper: 0.74 of the link (ai-dynamo/aiconfigurator@095f58a5)"),
        Constant("sync_seconds_per_tensor", 4e-3, 1.1, "s", "fitted",
                 "time that each tensor costs when tensors are sent one by one",
                 "18867 tensors of a 30B mixture of experts in 50 to 430 s (NeMo-RL pull request 449, slime blog)"),
        Constant("sync_seconds_per_bucket", 0.06, 1.2, "s", "fitted",
                 "time that each bucket costs when buckets are gathered and sent one by one",
                 "buckets of 0.5B to 6B parameters of Kimi-K2 (THUDM/slime pull request 689)"),
        Constant("sync_quantising_rate", 20e9, 0.8, "B/s", "fitted",
                 "bytes of 16-bit weights that a conversion to fp8 on the way gets through",
                 "with and without it: NeMo-RL pull requests 2971 and 3294, slime v0.1 release notes"),
        _fixed("checkpoint_engine", 0.4, 0.5, _ENGINE),
        _rate("checkpoint_engine", 85e9, 0.35, _ENGINE),
        _rate("checkpoint_engine_p2p", 70e9, 0.35, _ENGINE),
        _fixed("colocated", 3.0, 1.0, _REFIT),
        _fixed("device", 0.4, 0.8, "assumed: an engine on the trainer's own GPU wakes and copies; a step of verl on "
               "one A100 (soumyarani/verl-gaudi) has 0.5 s beside its phases"),
        _rate("colocated", 11e9, 0.75, _REFIT),
        _fixed("reshard", 0.65, 0.6, _RESHARD),
        _rate("reshard", 300e9, 0.6, _RESHARD),
        _fixed("broadcast", 2.0, 1.2, "assumed: between reshard and colocated"),
        _rate("broadcast", 14e9, 1.2, "slime v0.1 release notes and pull request 689, NeMo-RL pull request 3166"),
        Constant("sync_broadcast_stack", 1.0, 1.0, "1", "assumed",
                 "times longer that a stack takes to gather and broadcast than is counted, the link aside",
                 "between stacks: those of Miles take a fifth of what is counted, verl's 2 to 13 times as long (10 "
                 "rows of 2 publications)"),
        _fixed("store", 10.0, 0.8, "assumed: engine reload, metadata, barriers"),
        _rate("store", 2e9, 1.0, "assumed: a shared file system written once and read by all"),
    ),
)  # fmt: skip
