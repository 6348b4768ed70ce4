"""Why a simulation differs from the first-order formulas: the same loop, with one cause after the other let in."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from rlsize.simulator.setting import Latency, TroubleSetting

if TYPE_CHECKING:
    from rlsize.simulator.setting import Setting

BASE = "granularity"
"""The first rung: constant lengths, nothing that goes wrong; what is left is that work comes in whole pieces."""


def rungs(setting: Setting) -> list[tuple[str, Setting]]:
    """
    Settings from the simplest to the whole, each with one cause more, and what that cause is called.

    A cause that the setting does not have has no rung. The last rung is the setting itself.

    Args:
        setting: What is simulated.
    """
    simple = _simplest(setting)
    lengths = setting.work.lengths
    even = replace(simple.work, lengths=replace(lengths, correlation=0.0, drift=0.0))
    work = replace(simple.work, lengths=lengths)
    steps = [("long tail", replace(simple, work=even)), ("alike groups, drift", replace(simple, work=work))]
    cached = replace(simple, work=work, engine=setting.engine, others=setting.others)
    work = replace(work, acceptance=setting.work.acceptance, redundant_samples=setting.work.redundant_samples)
    ruled = replace(cached, work=work, rules=setting.rules)
    scored = replace(ruled, work=setting.work)
    trouble = setting.trouble
    slow = replace(
        simple.trouble,
        straggler_fraction=trouble.straggler_fraction,
        straggler_slowdown=trouble.straggler_slowdown,
    )
    lost = replace(
        slow,
        losses_per_hour=trouble.losses_per_hour,
        lost_together=trouble.lost_together,
        notice_seconds=trouble.notice_seconds,
        restart_seconds=trouble.restart_seconds,
    )
    steps += [
        ("KV cache", cached),
        ("policies", ruled),
        ("tools, verifier", scored),
        ("stragglers", replace(scored, trouble=slow)),
        ("lost instances", replace(scored, trouble=lost)),
        ("failures", setting),
    ]
    found = [(BASE, simple)]
    for name, rung in steps:
        if rung != found[-1][1]:
            found.append((name, rung))
    return found


def _simplest(setting: Setting) -> Setting:
    work = replace(
        setting.work,
        lengths=replace(setting.work.lengths, shape="constant", cv=0.0, correlation=0.0, drift=0.0, values=()),
        acceptance=1.0,
        turns=1,
        redundant_samples=0,
        environments=None,
        environment_seconds=0.0,
        tool=Latency(),
        tool_tokens=0,
        verify=Latency(),
        verify_failed_fraction=0.0,
        verify_workers=None,
    )
    rules = replace(
        setting.rules, oversampling=1.0, unfinished="drop", drops_over_stale=False, order="completion", resizes=()
    )
    return replace(
        setting,
        engine=replace(setting.engine, kv_tokens=inf),
        others=tuple(replace(kind, kv_tokens=inf) for kind in setting.others),
        work=work,
        rules=rules,
        trouble=TroubleSetting(
            lent_instances=setting.trouble.lent_instances, lend_seconds=setting.trouble.lend_seconds
        ),
    )
