"""
Tables around those of `docs/accuracy.md`: what was aimed at beside what its tables say, and which records carry them.

The tables of errors take minutes, so `python -m benchmarks.accuracy --write docs/accuracy.md` writes them, and cog
reads them from the page.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from generate.files import ROOT
from generate.markdown import table
from rlsize.estimates.recorded.registry import cell, contradictions, predictors
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.listing import profiles_of, read_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlsize.facts.records import Listing

PAGE = ROOT / "docs" / "accuracy.md"
MODEL, SOURCE = "Constants fitted without the model of the record", "Constants fitted without the source of the record"
MOVED, ALL = "Calibrated on one record, another of its family predicted", "Shipped constants, all records"
WINNERS = "The faster of two ways to do the same work"
LEFT_OUT = {
    left: f"Constants fitted without the {left} of the record"
    for left in ("GPU generation", "number type", "engine or framework")
}
UNSIZED = "dense, sizes not stated"
WAYS = (MODEL, SOURCE, *LEFT_OUT.values())
_ERRORS = dict.fromkeys((MODEL, SOURCE, ALL, *LEFT_OUT.values()), "median / p90 %") | {MOVED: "calibrated"}
_HOW = {MODEL: "a priori, model left out", SOURCE: "a priori, source left out", ALL: "a priori, shipped constants"}
_HOW |= {title: f"a priori, {left} left out" for left, title in LEFT_OUT.items()}


class Aim(NamedTuple):
    """What was aimed at for a quantity: median and 90th percentile of the error in percent, and where it is shown."""

    quantity: str
    aim: str
    title: str
    where: dict[str, str]


def _of(title: str, class_name: str, cell_name: str, field: str) -> tuple[str, dict[str, str]]:
    return title, {"class": class_name, "of these": cell_name, "field": field}


def _pair(class_name: str, cell_name: str, relation: str) -> tuple[str, dict[str, str]]:
    return MOVED, {"class": class_name, "of these": cell_name, "the two have": relation}


_RATE = "tokens_per_s_per_gpu"
_TOTAL, _EACH = "output_tok_s_total", "output_tok_s_per_gpu"
AIMS = (
    *(Aim("engine throughput, dense", "7 / 22", *_of(title, "engine_latency", "dense", _TOTAL)) for title in WAYS),
    Aim("engine throughput, dense", "4 / 12", *_pair("engine_latency", "dense", "same layout")),
    *(Aim("engine throughput, MoE", "12 / 35", *_of(title, "engine_latency", "MoE", _TOTAL)) for title in WAYS),
    Aim("engine throughput, MoE", "4 / 12", *_pair("engine_latency", "MoE", "same layout")),
    *(Aim("offline throughput, dense", "12 / 30", *_of(title, "rollout", "dense", _TOTAL)) for title in WAYS),
    Aim("offline throughput, dense, per GPU", "12 / 25", *_of(MODEL, "rollout", "dense", _EACH)),
    Aim("offline throughput, dense", "6 / 18", *_pair("rollout", "dense", "same layout")),
    *(
        Aim(f"offline throughput, MoE{what}", "12 / 30", *_of(title, "rollout", "MoE", field))
        for what, field in (("", _TOTAL), (", per GPU", _EACH))
        for title in WAYS
    ),
    Aim("offline throughput, MoE", "10 / 30", *_pair("rollout", "MoE", "same layout")),
    *(
        Aim(f"train tokens/s, {kind}", aim, *_of(title, "train", kind, "tokens_per_s_per_gpu"))
        for kind, aim in (("dense", "8 / 25"), ("MoE", "15 / 40"))
        for title in WAYS
    ),
    *(Aim("train step, dense", "8 / 25", *_of(title, "train", "dense", "step_time_s")) for title in WAYS),
    Aim("train tokens/s, dense", "4 / 12", *_pair("train", "dense", "other GPU count")),
    Aim("train tokens/s, dense", "8 / 20", *_pair("train", "dense", "other length")),
    *(Aim("training peak", "8 / 25", *_of(title, "memory", "dense", "peak_gib_per_gpu")) for title in WAYS),
    Aim("KV cache tokens, low trust", "3 / 8", *_of(ALL, "memory", "dense (low trust)", "kv_cache_tokens")),
    Aim("weights in an engine", "1 / 2", *_of(ALL, "memory", "dense", "weights_gib_per_gpu")),
    *(
        Aim(f"RL step, {kind}", "15 / 40", *_of(title, "rl_step", kind, "step_time_s"))
        for kind in ("dense", UNSIZED, "MoE")
        for title in WAYS
    ),
    *(
        Aim("RL tokens/s, MoE, sizes not stated", "15 / 40", *_of(title, "rl_step", "MoE, sizes not stated", _RATE))
        for title in WAYS
    ),
    Aim("RL step, dense", "6 / 15", *_pair("rl_step", "dense", "same mode and GPUs")),
    Aim("RL step, MoE", "6 / 15", *_pair("rl_step", "MoE", "same mode and GPUs")),
    Aim("RL step, MoE", "10 / 30", *_pair("rl_step", "MoE", "same mode, other GPUs")),
    Aim("RL step, dense", "10 / 30", *_pair("rl_step", "dense", "other mode")),
    Aim("RL step, dense, sizes not stated", "6 / 15", *_pair("rl_step", UNSIZED, "same mode and GPUs")),
    Aim("RL step, dense, sizes not stated", "10 / 30", *_pair("rl_step", UNSIZED, "other mode")),
    Aim("RL step, MoE", "10 / 30", *_pair("rl_step", "MoE", "other mode")),
    *(
        Aim(f"weight sync, {kind}", "30 / 100", *_of(title, "sync", kind, "sync_time_s"))
        for kind in ("dense", "MoE")
        for title in WAYS
    ),
    *(
        Aim(f"weight sync, {kind}", "20 / 60", *_pair("sync", f"{kind}, on two records", "other layout"))
        for kind in ("dense", "MoE")
    ),
)


def aims() -> str:
    """Aims beside what the tables of the page say."""
    return table(["Quantity", "How", "Aim", "Reached", "In band %", "n"], _aims())


def _aims() -> list[list[str]]:
    found = _tables(PAGE.read_text(encoding="utf-8"))
    rows = [_aim(entry, found.get(entry.title, [])) for entry in AIMS]
    for row in found.get(WINNERS, []):
        reached = f"{row['right']} of {row['pairs']} right"
        what = "the faster of colocated and split"
        rows.append([what, _HOW[ALL], "9 of 10 right", reached, "-", f"{row['pairs']} pairs"])
    return rows


_UNSIZED = "a batch, or a mean length, that is a guess"
_FEW_SYNCS = "21 updates of two stacks in bf16, verl's between A100 nodes 2 to 13 times the prediction"
_ONE_LOOP = "all are NeMo-RL's, and of one publication: without them dense loops of others stand in"
_ONE_RUNTIME = "all are TensorRT-LLM's: without it constants of experts come of closed loops of vLLM and SGLang"
_REQUESTS = (
    "gpt-oss-120b and Llama 4 Maverick on Hopper, with responses of 8k to 32k tokens: how many requests they had is "
    "not stated"
)
_A_PRIORI = {
    ("engine throughput, dense", "source"): "all rows are one publication: without it nothing is left of closed "
    "loops, and constants come from offline tables of one engine",
    ("engine throughput, MoE", "model"): "kernels of experts differ by engine and version, and most models are alone "
    "in their kind of experts: R1 under SGLang on B200, MiniMax-M2.5 on four H200",
    (
        "offline throughput, MoE",
        "number type",
    ): "103 of 216 rows are in nvfp4, and 44 in mxfp4: without one of them the other, and fp8, say what experts reach",
    ("offline throughput, MoE", "engine or framework"): _ONE_RUNTIME,
    **{
        ("offline throughput, MoE, per GPU", left): _REQUESTS
        for left in ("model", "source", "GPU generation", "number type")
    },
    ("offline throughput, MoE, per GPU", "engine or framework"): _ONE_RUNTIME,
    ("RL step, dense", "number type"): "58 of 59 are in bf16: without them mixtures of experts stand in",
    **{
        ("train step, dense", left): "20 steps of prime-rl's SFT, whose loss in full and eager kernels nothing else has"
        for left in ("model", "source", *LEFT_OUT)
    },
    **{
        ("RL tokens/s, MoE, sizes not stated", left): "two rows of one run, whose lengths are a guess"
        for left in ("model", "source", *LEFT_OUT)
    },
    **{("RL step, dense, sizes not stated", left): _UNSIZED for left in ("model", "source", *LEFT_OUT)},
    ("RL step, MoE", "source"): _ONE_LOOP,
    ("RL step, MoE", "number type"): "31 of 32 are in bf16, and so are the dense ones",
    ("RL step, MoE", "engine or framework"): _ONE_LOOP,
    ("weight sync, dense", "source"): "verl's broadcasts between nodes, 2 to 13 times the prediction on a network "
    "that is not named",
    **{("weight sync, dense", left): _FEW_SYNCS for left in ("model", "GPU generation", "number type")},
    ("weight sync, MoE", "GPU generation"): "43 of 51 are on Hopper: without them little is left of any stack",
    ("weight sync, MoE", "number type"): "only rows in fp8 tell how quickly weights are quantised on the way",
    ("weight sync, MoE", "engine or framework"): "how a stack handles its tensors is its own",
}
WHY_NOT = {
    **{(quantity, f"a priori, {left} left out"): why for (quantity, left), why in _A_PRIORI.items()},
    ("engine throughput, dense", "calibrated; same layout"): "a row at few requests tells the host's time, one at many "
    "that of kernels: the one says little of the other",
    ("engine throughput, MoE", "calibrated; same layout"): "as for dense models; prompts of SGLang's experts besides",
    ("KV cache tokens, low trust", "a priori, shipped constants"): "one log",
    (
        "RL step, dense, sizes not stated",
        "calibrated; same mode and GPUs",
    ): "lengths that change within a run are not stated, and a run repeated by another user differed by 4 to 21 %",
    (
        "RL step, dense, sizes not stated",
        "calibrated; other mode",
    ): "the trainer of verl's async runs takes half of the GPU-seconds of "
    "the colocated one's update, and no source says why; batches and lengths are not stated",
    ("RL step, MoE", "calibrated; same mode and GPUs"): "two pairs of one family",
    ("weight sync, dense", "calibrated on two; other layout"): "one stack's broadcasts of one model differ six times "
    "by how the trainer spreads its weights, which is not counted",
    (
        "the faster of colocated and split",
        "a priori, shipped constants",
    ): "the six that are wrong are verl's on H20 (one is predicted as a tie), "
    "whose async trainers take half of the GPU-seconds of the colocated update",
}
"""Why an aim is not reached, by quantity and how it is looked at."""


def missed() -> str:
    """The aims that are not reached, each with its reason."""
    rows = [row for row in _aims() if _missed(row[2], row[3])]
    return table(
        ["Quantity", "How", "Aim", "Reached", "Why not"], [[*row[:4], WHY_NOT[row[0], row[1]]] for row in rows]
    )


def _missed(aim: str, reached: str) -> bool:
    """Whether one of the numbers is further from what was aimed at; no number is no miss."""
    if "right" in aim:
        (right, of), (wanted, out_of) = (map(int, re.findall(r"\d+", text)) for text in (reached, aim))
        return right * out_of < wanted * of
    pairs = zip(*(re.findall(r"[\d.]+", text) for text in (aim, reached)), strict=False)
    return any(float(got) > float(wanted) for wanted, got in pairs)


def _aim(entry: Aim, rows: Iterable[dict[str, str]]) -> list[str]:
    row = next((row for row in rows if all(row.get(key) == value for key, value in entry.where.items())), {})
    how = _HOW.get(entry.title) or f"calibrated; {entry.where['the two have']}"
    if entry.where["of these"].endswith("on two records"):
        how = f"calibrated on two; {entry.where['the two have']}"
    held = row.get("in band % (95 % interval)", row.get("in band", "-"))
    count = row.get("n") or (f"{row['pairs']} pairs, {row['families']} families" if "pairs" in row else "-")
    return [entry.quantity, how, entry.aim, row.get(_ERRORS[entry.title], "no such records"), held, count]


def _tables(text: str) -> dict[str, list[dict[str, str]]]:
    """The rows of each table of the page, by the heading above it."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    title = ""
    header: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            title, header = line.lstrip("# "), []
        elif line.startswith("| "):
            cells = [part.strip() for part in line.strip("| ").split(" | ")]
            if not header:
                header = cells
            elif set(cells) != {"---"}:
                found[title].append(dict(zip(header, cells, strict=False)))
    return found


def carried() -> str:
    """Which records carry each cell: how many, of which models, GPUs and sources."""
    known, look_up = predictors(), profiles_of(Catalogue())
    cells = defaultdict(list)
    for entry in _listing().records:
        if entry.class_name in known:
            name = cell(known[entry.class_name], entry.record, look_up(entry.record))
            cells[entry.class_name, name].append(entry.record)
    rows = [
        [
            class_name,
            name,
            str(len(records)),
            _listed(record.model for record in records),
            _listed(record.gpu for record in records),
            _listed(record.source_id for record in records),
        ]
        for (class_name, name), records in sorted(cells.items())
    ]
    return table(["Class", "Of these", "n", "Models", "GPUs", "Sources"], rows)


def out_of_order() -> str:
    """Records that contradict their neighbours, with the reason."""
    rows = []
    for name, predictor in predictors().items():
        own = [entry.record for entry in _listing().records if entry.class_name == name]
        rows += [[name, own[place].id, why] for place, why in sorted(contradictions(predictor, own).items())]
    return table(["Class", "Record", "Why"], rows)


@cache
def _listing() -> Listing:
    return read_records(sorted((ROOT / "benchmarks" / "published").glob("*.yaml")), Catalogue())


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in _sorted(Counter(names)))


def _sorted(counted: Counter[str]) -> Sequence[tuple[str, int]]:
    return sorted(counted.items())
