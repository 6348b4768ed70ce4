"""Prices of both pools; no price is ever assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from rlsize.facts.price import Price
    from rlsize.loop.said import Said


def gpu_hours(said: Said) -> tuple[Figure, Figure]:
    """Dollars per GPU-hour of the rollout fleet and of the trainer."""
    if said.by_flag("gpu_hour_usd") and said.by_flag("price"):
        both = f"{said.flag('gpu_hour_usd')}, {said.flag('price')}"
        said.fault("a price and a price profile both say it", both, "leave one of them out")
    common = said.ask("gpu_hour_usd")
    if said.gives("price") and not said.by_flag("gpu_hour_usd") and (said.by_flag("price") or not common.known):
        name, where = said.name("price")
        profile = said.profile("price", str(name), where)
        common = _listed(said, profile) if profile is not None else absent("gpu_hour_usd", "--gpu-hour")
    paid = _side(said, "rollout_gpu_hour_usd", common), _side(said, "trainer_gpu_hour_usd", common)
    if common not in paid:
        said.drop("gpu_hour_usd")
        said.drop("price")
    return paid


def _side(said: Said, key: str, common: Figure) -> Figure:
    """A pool's own price, unless only the scenario says it and a flag sets the common one."""
    own = said.ask(key)
    overridden = (said.by_flag("gpu_hour_usd") or said.by_flag("price")) and not said.by_flag(key)
    if own.known and overridden:
        said.drop(key)
    return own if own.known and not overridden else common


def _listed(said: Said, price: Price) -> Figure:
    rate = price.usd_per_gpu_hour
    return said.keep(Figure(key="gpu_hour_usd", value=rate.value, source=price_text(price), verified=rate.verified))


def price_text(price: Price) -> str:
    """Who asks this price, where and when; it holds for nothing else."""
    return f"price profile {price.name}: {price.cloud}, {price.region}, as of {price.as_of}"


def say_date(said: Said) -> None:
    """Note the date and region that a scenario gives for its typed prices."""
    date, region = said.said("prices.as_of"), said.said("prices.region")
    if date or region:
        known = [text for text in (f"as of {date}" if date else "", f"region {region}" if region else "") if text]
        said.notes.append(f"The scenario's prices: {', '.join(known)}.")
