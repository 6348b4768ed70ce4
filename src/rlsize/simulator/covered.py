"""What the compiled kernel knows, and whether there is a compiler; nothing of it is loaded for that."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from rlsize.simulator.setting import Order, Routing, TroubleSetting, Way

if TYPE_CHECKING:
    from rlsize.simulator.setting import Setting

EXTRA = "rlsize[fast]"
"""What to install for it."""

ROUTINGS: tuple[Routing, ...] = ("affine", "round-robin", "queue")
WAYS: tuple[Way, ...] = ("in-flight", "drain", "abort")
ORDERS: tuple[Order, ...] = ("completion", "admission", "freshest")
"""What the kernel calls 0, 1, 2."""

_MOST_SLOTS = 1 << 22  # of a fleet: each takes 24 bytes


def covers(setting: Setting) -> bool:
    """Whether the kernel knows all that a setting asks for; the rest is the specification's."""
    work, trouble = setting.work, setting.trouble
    slow = TroubleSetting(
        straggler_fraction=trouble.straggler_fraction,
        straggler_slowdown=trouble.straggler_slowdown,
        checkpoint_every=trouble.checkpoint_every,
        lost_together=trouble.lost_together,
        notice_seconds=trouble.notice_seconds,
        restart_seconds=trouble.restart_seconds,
        trainer_restart_seconds=trouble.trainer_restart_seconds,
        lend_seconds=trouble.lend_seconds,
    )
    return (
        trouble == slow
        and work.turns == 1
        and work.verify.seconds == 0.0
        and not work.equipped
        and not work.redundant_samples
        and setting.engine.routing in ROUTINGS
        and setting.sync.way in WAYS
        and not setting.rules.resizes
        and not setting.others
        and setting.rules.redealing == "arrivals"  # of which there are none
        and setting.engine.instances * setting.engine.slots <= _MOST_SLOTS
    )


def installed() -> bool:
    """Whether there is a compiler."""
    return find_spec("numba") is not None
