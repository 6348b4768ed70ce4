"""A step-time table that somebody measured: an engine step by its running samples, and the rate that follows."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

from rlsize import units
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from rlsize.loop.said import Said

KEY = "step_points"
_PER_TOKEN = ("step_kv_token", "step_prompt_token")
_EXAMPLE = "write 1=9ms, 64=14ms, 256=30ms: samples and seconds, at two points or more, the fewest samples first"


def step_points(said: Said) -> tuple[tuple[int, float], ...]:
    """
    Running samples, and what an engine step with them takes; nothing where nobody says. [1, s]

    Args:
        said: What was said; takes a fault where it is no table.
    """
    text, where = said.name(KEY)
    if text is None:
        return ()
    try:
        pairs = [part.partition("=") for part in str(text).split(",") if part.strip()]
        found = [(units.quantity(samples, "count"), units.quantity(seconds, "s")) for samples, _, seconds in pairs]
    except ValueError as error:
        said.fault(str(error), where, _EXAMPLE)
        return ()
    samples = [point for point, _ in found]
    rising = all(low < high for low, high in pairwise([0.0, *samples]))
    whole = all(one == round(one) for one in samples)
    quickest = min((seconds for _, seconds in found), default=0.0)
    if len(found) < 2 or not rising or not whole or not 0.0 < quickest < inf:  # noqa: PLR2004 (a line has two ends)
        said.fault(f"{units.cut(str(text), 60)!r} is no table of step times", where, _EXAMPLE)
        return ()
    said.keep(Figure(key=KEY, value=str(text), source=where))
    return tuple((round(point), seconds) for point, seconds in found)


def rate_of_points(said: Said) -> Figure:
    """
    Response tokens per second of an instance whose batch stays full, by its table; absent where nobody says one.

    Args:
        said: The table, the samples at once, else the most of the table, and lengths where they count.
    """
    key, points = "instance_tokens_per_second", step_points(said)
    missing = absent(key, said.flag(key))
    if not points:
        return missing
    from rlsize.simulator.first_order import instance_rate
    from rlsize.simulator.setting import EngineSetting, LengthSetting, Setting, TrainerSetting, WorkSetting

    stated = said.ask("concurrency")
    batch = stated.number if stated.known else float(points[-1][0])
    kv, prompt = (said.ask(each).number if said.gives(each) else 0.0 for each in _PER_TOKEN)
    work = WorkSetting(groups=1, group_size=1, lengths=LengthSetting(mean=1.0))
    if kv or prompt:
        response, cap, group = (said.ask(each) for each in ("response_tokens", "max_response_tokens", "group_size"))
        said.need(response, "give --response-tokens, by which the cache and the prompts of a step go")
        work = WorkSetting(
            groups=1,
            group_size=round(group.number) if group.known else 1,
            lengths=LengthSetting(
                mean=response.number if response.known else 1.0,
                cv=said.ask("response_cv").number,
                cap=cap.number if cap.known else inf,
            ),
            prompt_tokens=round(said.ask("prompt_tokens").number),
        )
    engine = EngineSetting(
        instances=1,
        slots=max(1, round(batch)),
        fixed_seconds=points[0][1],
        kv_seconds=kv,
        prefill_seconds=prompt,
        points=points,
    )
    rate = instance_rate(Setting(engine=engine, work=work, trainer=TrainerSetting(seconds=0.0)), batch, engine)
    source = f"{said.place(KEY)}, with {batch:g} samples at once"
    return said.keep(Figure(key=key, value=rate, source=source))
