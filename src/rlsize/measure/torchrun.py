"""How torchrun brings ranks together, on one node or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

STORE = "read_timeout=15"  # torchrun's first connection to its own store may hang until it times out: 60 s if not told
PER_NODE = ("--nproc-per-node", "--nproc_per_node")


def rendezvous(flags: Sequence[str], ranks: int) -> list[str]:
    """
    Flags of torchrun.

    Args:
        flags: What the user says for several nodes; empty for one node.
        ranks: Ranks that a node starts, unless the flags say it.

    >>> rendezvous([], 2)
    ['--standalone', '--rdzv-conf', 'read_timeout=15', '--nproc-per-node', '2']
    >>> rendezvous(["--nnodes", "2"], 8)
    ['--nnodes', '2', '--nproc-per-node', '8']
    """
    said = any(flag.split("=")[0] in PER_NODE for flag in flags)
    return [*(flags or ("--standalone", "--rdzv-conf", STORE)), *(() if said else ("--nproc-per-node", str(ranks)))]
