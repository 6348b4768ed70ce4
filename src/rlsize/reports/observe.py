"""What to say about a fleet that was watched: its rate, whether that is all it can do, and its instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.length_fit import pasted
from rlsize.facts.figure import Figure, absent
from rlsize.facts.headroom import HEADROOM_PARTS
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.observations import InstanceObservation, Observation
    from rlsize.reports.report import Cell

_LONG_WINDOW = "more than two pages"
_QUIET = frozenset(
    {
        "lower_bound",
        "kv_cache_tokens",
        "instances_left_out",
        "page_gpus_per_instance",
        "response_samples",
        "response_cv_error",
    }
)
_CAP = ("max_response_tokens",)
_SURE = ("response_samples", "response_cv_error")
_QUANTILES = ("response_p50_tokens", "response_p90_tokens", "response_p99_tokens")


def observe_report(
    seen: Observation,
    inputs: Sequence[Figure],
    left: Figure,
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> Report:
    """
    The report of `rlsize observe`.

    Args:
        seen: What the fleet did.
        inputs: What was asked.
        left: Headroom for what the rate does not contain.
        notes: What happened on the way.
        warnings: What happened on the way and casts doubt.
    """
    return Report(
        command="observe",
        headline=_headline(seen),
        results=(*_rates(seen), left, *_conditions(seen)),
        inputs=tuple(inputs),
        tables={"instances": instances_table(seen)},
        warnings=(*seen.warnings, *warnings),
        notes=(_included(seen, left), *_scenario(seen), *notes),
        chart=observe_chart(seen),
        quiet=_QUIET,
    )


def _headline(seen: Observation) -> str:
    rate = show(seen.mean, "_tokens_per_second")
    count = f"{len(seen.used)} instance{'s' if len(seen.used) > 1 else ''}"
    over = f"{count} watched for {show(seen.window_seconds, '_seconds')}"
    if seen.lower_bound:
        return f"At least {rate} per instance, a lower bound: {over} and not asked for all that they can do."
    return f"{rate} per instance: {over}, {seen.why}."


def _rates(seen: Observation) -> list[Figure]:
    source = f"{seen.keys.get('generation_tokens', 'generation_tokens')} over {show(seen.window_seconds, '_seconds')}"
    total = sum(instance.tokens_per_second or 0.0 for instance in seen.used)
    stragglers = sum(1 for instance in seen.used if instance.straggler)
    return [
        _measured("instance_tokens_per_second", seen.mean, source, deviation=seen.spread or 0.0),
        _measured("spread_tokens_per_second", seen.spread, source, "two instances"),
        _measured("busy_instance_tokens_per_second", seen.busy_mean, source, _LONG_WINDOW),
        _measured("fleet_tokens_per_second", total, source),
        _measured("instances_used", len(seen.used)),
        _measured("instances_left_out", len(seen.instances) - len(seen.used)),
        _measured("stragglers", stragglers),
        _measured("saturated_fraction", seen.saturated_fraction, seen.why, _LONG_WINDOW),
        _measured("lower_bound", seen.lower_bound, seen.why),
        _measured("window_seconds", seen.window_seconds),
    ]


def _conditions(seen: Observation) -> list[Figure]:
    def key(*names: str) -> str:
        return ", ".join(seen.keys[name] for name in names if name in seen.keys)

    syncs = "a page that counts them"
    return [
        _measured("mean_response_tokens", seen.mean_response_tokens, key("response_tokens.sum"), "finished samples"),
        *_lengths(seen, key("response_buckets")),
        _measured("mean_prompt_tokens", seen.mean_prompt_tokens, key("prompt_lengths.sum"), "finished samples"),
        _measured("group_size", seen.group_size, key("samples_per_request.sum"), "--group"),
        _measured(
            "prefix_cache_hit_fraction",
            seen.prefix_cache_hit_fraction,
            key("prefix_cache_hits", "prefix_cache_queries"),
            "a page that counts cache hits",
        ),
        seen.affine_prefix_cache_hit_fraction,
        _measured("preemptions_per_second", seen.preemptions_per_second, key("preemptions"), "a page that counts them"),
        _measured("weight_syncs", seen.weight_syncs, key("weight_syncs"), syncs),
        _measured("weight_sync_seconds", seen.weight_sync_seconds, key("weight_sync_seconds"), syncs),
        _measured("kv_cache_tokens", seen.kv_cache_tokens, key("kv_cache_tokens"), "a page that states it"),
        _measured("page_gpus_per_instance", seen.gpus_per_instance, "the engines' pages", "a page that states it"),
    ]


def _lengths(seen: Observation, source: str) -> list[Figure]:
    """The distribution of response lengths, as scenarios have it."""
    fit = seen.lengths
    if fit is None or fit.cv is None:
        missing = fit.why if fit is not None else "a page with a histogram of lengths, and finished samples"
        return [absent("response_cv", missing)]  # the one that a scenario needs speaks for all
    source = f"likeliest lognormal for {fit.samples:,.0f} samples in the buckets of {source}"
    cap = _measured(_CAP[0], fit.cap, fit.cap_from, "samples that reach a cap")
    figures = [_measured("response_cv", fit.cv, source, deviation=fit.cv_error or 0.0), cap]
    return [
        *figures,
        *(_measured(key, value, source) for key, value in zip(_QUANTILES, fit.quantiles or (), strict=True)),
        _measured(_SURE[0], fit.samples, source),
        _measured(_SURE[1], fit.cv_error, source, "a likelihood with a peak"),
    ]


def _measured(key: str, value: float | None, source: str = "", missing: str = "", deviation: float = 0.0) -> Figure:
    if value is None:
        return absent(key, missing)
    return Figure(key=key, value=value, provenance="measured", source=source, deviation=deviation)


def _included(seen: Observation, left: Figure) -> str:
    held = "; ".join(f"{part.replace('_', ' ')} ({why})" for part, why in seen.includes.items())
    start = f"The rate already includes {held}." if held else "The rate includes no part of headroom yet."
    rest = [part.replace("_", " ") for part in HEADROOM_PARTS if part not in seen.includes]
    missing = " and ".join(part for part in (", ".join(rest[:-1]), rest[-1]) if part)
    return f"{start} Headroom {show(left.value)} is left for {missing}."


def _scenario(seen: Observation) -> list[str]:
    fit = seen.lengths
    if fit is None or fit.cv is None:
        return []
    sure = f" ± {fit.cv_error:.2g}" if fit.cv_error is not None else ""
    sure = f"(cv {fit.cv:.2f}{sure}, from {fit.samples:,.0f} samples)"
    return [f"`{pasted(fit)}` says these lengths in a scenario, under `workload` {sure}."]


def instances_table(seen: Observation) -> Table:
    """One row for each instance, those left out last."""
    return Table(
        title="Instances",
        columns=(
            Column("instance", "instance", "left", wide=True),
            Column("tokens_per_second", "rate"),
            Column("busy_tokens_per_second", "busy"),
            Column("saturated_fraction", "saturated"),
            Column("prefix_cache_hit_fraction", "hits"),
            Column("state", "", "left", wide=True),
        ),
        rows=tuple(_row(instance) for instance in seen.instances),
        note="rate: response tokens per second by wall clock; busy: while requests ran; hits: prefix cache",
    )


def _row(instance: InstanceObservation) -> dict[str, Cell]:
    return {
        "instance": instance.instance,
        "tokens_per_second": instance.tokens_per_second,
        "busy_tokens_per_second": instance.busy_tokens_per_second,
        "saturated_fraction": instance.saturated_fraction,
        "lower_bound": instance.lower_bound if instance.used else None,
        "straggler": instance.straggler,
        "preemptions_per_second": instance.preemptions_per_second,
        "prefix_cache_hit_fraction": instance.prefix_cache_hit_fraction,
        "mean_response_tokens": instance.mean_response_tokens,
        "weight_syncs": instance.weight_syncs,
        "weight_sync_seconds": instance.weight_sync_seconds,
        "window_seconds": instance.seconds,
        "why": instance.why,
        "left_out": instance.left_out,
        "state": _state(instance),
    }


def _state(instance: InstanceObservation) -> str:
    if not instance.used:
        return "left out"
    bound = "lower bound" if instance.lower_bound else ""
    return ", ".join(part for part in ("straggler" if instance.straggler else "", bound) if part)


def observe_chart(seen: Observation) -> Chart:
    """The instances' rates side by side, with their mean."""
    names = tuple(instance.instance for instance in seen.used)
    rates = tuple(instance.tokens_per_second or 0.0 for instance in seen.used)
    return Chart(
        title=f"{'At least ' if seen.lower_bound else ''}{show(seen.mean, '_tokens_per_second')} per instance",
        x_label="instance",
        y_label="response tokens per second",
        series=(Series(name="by wall clock", xs=names, ys=rates, role="rollout"),),
        kind="bars",
        marks=(Mark(at=seen.mean or 0.0, label="mean", axis="y"),),
    )
