"""`rlsize profiles`: the GPUs, links, models, prices and clusters that rlsize knows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from rlsize.facts.fields import Quantity, Sourced, Uncertain, unverified
from rlsize.facts.figure import Figure
from rlsize.facts.link import achievable_fraction
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.shell.command import Entry as Subcommand
from rlsize.shell.command import Force, Group, Profiles, argument, option
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rlsize.estimates.model_size import ModelSize
    from rlsize.facts.figure import Value
    from rlsize.facts.framework import Framework
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.link import Cluster, Link
    from rlsize.facts.model import Model
    from rlsize.facts.price import Price
    from rlsize.facts.rates import Rates
    from rlsize.reports.report import Cell

DEFAULT_FOLDER = "profiles"
SHADOWED = "{name} is the name of a shipped profile, which this one replaces wherever its folder is named."
_CELLS = (
    Column("part", "part", "left", of=lambda part: part.name.replace("_", " ")),
    Column("params", "parameters", of=lambda part: part.params.value),
    Column("active_params", "active", of=lambda part: part.active_params.value),
)
_CACHES = (
    "kv_bytes_per_token", "index_bytes_per_token", "sliding_cap_bytes", "recurrent_state_bytes",
    "convolution_state_bytes",
)  # fmt: skip


_ASKED = {
    "list": ("list_profiles", "What profiles there are, with the numbers that one chooses by."),
    "show": ("show_profile", "One profile: every number with its unit and source."),
    "check": ("check_profiles", "Whether every profile is well formed, sourced and consistent."),
    "add-model": ("add_model", "Make a profile of a Hugging Face config.json, with computed parameter counts."),
}
_ENTRIES = {name: Subcommand("", said, "profiles", function) for name, (function, said) in _ASKED.items()}


class Catalogued(Group):
    """What one asks of profiles."""

    entries: Mapping[str, Subcommand] = {
        name: Subcommand("", said, "profiles", of) for name, (of, said) in _ASKED.items()
    }


app = typer.Typer(cls=Catalogued, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")

TITLES: Mapping[str, str] = {
    "gpu": "GPUs", "link": "Links", "model": "Models", "price": "Prices", "cluster": "Clusters", "rates": "Rates",
    "framework": "Frameworks",
}  # fmt: skip
_LEFT = frozenset({
    "name", "link", "scope", "gpu", "interconnect", "region", "as_of", "reached_says", "measured_at", "modes",
    "backends", "engines",
})  # fmt: skip
_WRAPPING = frozenset({"region", "modes", "backends", "engines"})
_COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "gpu": (("name", "GPU"), ("bf16_flops", "bf16"), ("memory_bytes", "memory"),
            ("memory_bandwidth_bytes_per_second", "bandwidth"), ("scale_up_bytes_per_second", "scale-up")),
    "link": (("name", "link"), ("scope", "scope"), ("one_direction_bytes_per_second", "one direction"),
             ("both_directions_bytes_per_second", "both"), ("achievable_fraction", "reached"), ("reached_says", "")),
    "model": (("name", "model"), ("total", "parameters"), ("active", "active"), ("kv_bytes_per_token", "KV cache")),
    "price": (("name", "price"), ("per_gpu_hour_usd", "GPU-hour"), ("spot_per_gpu_hour_usd", "spot"),
              ("region", "region"), ("as_of", "as of")),
    "cluster": (("name", "cluster"), ("gpu", "GPU"), ("node_gpus", "a node"), ("interconnect", "interconnect"),
                ("nic_bytes_per_second", "network")),
    "rates": (("name", "rates"), ("instance_tokens_per_second", "instance"), ("train_seconds", "train"),
              ("measured_at", "measured")),
    "framework": (("name", "framework"), ("modes", "modes"), ("backends", "trainers"), ("engines", "engines")),
}  # fmt: skip
_NOTES: Mapping[str, str] = {
    "gpu": "bf16 is the dense peak; scale-up is one direction per GPU",
    "link": (
        "per GPU; reached: the share of one direction that transfers get; "
        "carried over: taken from other links, verified by nobody"
    ),
    "model": "KV cache in bf16, layers that attend to the whole context",
    "price": "a price holds for its day, region and terms only",
    "cluster": "network: per GPU, one direction",
}  # fmt: skip

# A key whose ending says the unit, for each unit that a field may declare.
_ENDINGS: Mapping[str, str] = {
    "B": "_bytes", "B/s": "_bytes_per_second", "FLOP/s": "_flops", "s": "_seconds", "W": "_watts", "usd": "_usd",
    "token": "_tokens", "token/s": "_tokens_per_second", "param": "_params",
}  # fmt: skip
# Told in the headline, below, or in tables of their own.
_APART = frozenset({"name", "title", "aliases", "sources", "notes"})
_SOURCE_COLUMNS = (Column("key", "", "left"), Column("says", "what it is", "left", wide=True))


@app.callback()
def _profiles() -> None:
    """
    The GPUs, links, models, prices and clusters that rlsize knows.

    Example:  rlsize profiles show h100
    """


def list_profiles(
    kind: Annotated[
        str | None, argument("KIND", "gpu, link, model, price, cluster or rates; all when left out.")
    ] = None,
    profiles: Profiles = None,
) -> Report:
    """
    What profiles there are, with the numbers that one chooses by.

    Example:  rlsize profiles list gpu
    """
    from rlsize.readers.profiles import FOLDERS, Catalogue, user_folders

    catalogue = Catalogue(user_folders(profiles or []))
    kinds = list(FOLDERS) if kind is None else [_kind(kind)]
    named = {each: [(name, catalogue.get(each, name)) for name in catalogue.names(each)] for each in kinds}
    return list_report({each: found for each, found in named.items() if found or kind is not None})


def show_profile(
    name: Annotated[str, argument("NAME", "A profile's name or alias, such as h100-sxm or ndr.")],
    kind: Annotated[str | None, option("--kind", "Where several kinds have that name.", None, "KIND")] = None,
    profiles: Profiles = None,
) -> Report:
    """
    One profile: every number with its unit and source.

    Example:  rlsize profiles show h100
    """
    from rlsize.readers.profiles import Catalogue, shipped_folder, user_folders

    catalogue = Catalogue(user_folders(profiles or []))
    found = catalogue.kind_of(name) if kind is None else _kind(kind)
    path = catalogue.path_of(found, name)
    place = f"{path.parent.name}/{path.name}" if shipped_folder() in path.parents else str(path)
    return profile_page(found, path.stem, catalogue.get(found, name), place)


def check_profiles(
    folder: Annotated[
        str | None, argument("[DIR]", "A folder of your own profiles; all folders when left out.")
    ] = None,
    profiles: Profiles = None,
) -> Report:
    """
    Whether every profile is well formed, sourced and consistent.

    Example:  rlsize profiles check examples/my-profiles
    """
    from rlsize.errors import refuse
    from rlsize.readers.profiles import FOLDERS, Catalogue, user_folders

    catalogue = Catalogue(user_folders([*(profiles or []), *([folder] if folder else [])]))
    refuse(catalogue.check(folder))
    return check_report({kind: catalogue.count(kind, folder) for kind in FOLDERS})


def _kind(text: str) -> str:
    """
    The kind that a word means: `gpu` or the name of its folder, `gpus`.

    Raises:
        InputError: It means none.
    """
    from rlsize.errors import Fault, InputError, suggestion
    from rlsize.readers.profiles import FOLDERS

    by_word = {folder: kind for kind, folder in FOLDERS.items()} | {kind: kind for kind in FOLDERS}
    if text.lower() not in by_word:
        raise InputError(Fault(f"there is no kind of profile {text[:40]!r}", "KIND", suggestion(text[:40], FOLDERS)))
    return by_word[text.lower()]


def add_model(
    config: Annotated[str, argument("CONFIG", "A config.json, or the directory of a model that holds one.")],
    name: Annotated[str | None, option("--name", "Name of the profile; else that of the model.", None, "NAME")] = None,
    output: Annotated[
        str | None,
        option(
            "--output",
            "Folder of profiles to write to: DIR/models/NAME.yaml. "
            f"Else the last of --profiles and RLSIZE_PROFILES, else {DEFAULT_FOLDER}.",
            None,
            "DIR",
        ),
    ] = None,
    force: Force = False,
    profiles: Profiles = None,
) -> Report:
    """
    Make a profile of a Hugging Face config.json, with computed parameter counts.

    Example:  rlsize profiles add-model examples/my-model/config.json --output my-profiles
    """
    from pathlib import Path

    from rlsize.estimates.model_size import model_size
    from rlsize.readers.huggingface import read_model
    from rlsize.readers.profiles import FOLDERS, Catalogue, shipped_folder, user_folders
    from rlsize.writers.model_profile import write_model_profile

    model = read_model(config, name or "")
    folder = Path(output) if output else [Path(DEFAULT_FOLDER), *user_folders(profiles or [])][-1]
    shadowed = model.name in Catalogue().names("model") and folder.resolve() != shipped_folder().resolve()
    target = write_model_profile(model, folder / FOLDERS["model"], force=force)
    saved = Figure(key="profile", value=str(target), source="--output" if output else "default of --output")
    return _report(model, model_size(model), saved, folder=str(folder), shadowed=shadowed)


def _report(model: Model, size: ModelSize, saved: Figure, *, folder: str, shadowed: bool) -> Report:
    """What the new profile holds: its size, and the bill part by part."""
    params, active = size.params.number / 1e9, size.active_params.number / 1e9
    caches = [getattr(size, name) for name in _CACHES]
    return Report(
        headline=f"{model.name}: {params:.4g}B parameters, {active:.4g}B work on each token; wrote {saved.value}",
        results=(saved, size.params, size.active_params, *(cache for cache in caches if cache.value)),
        quiet=frozenset({"profile"}),
        tables={"parts": Table.of("Parameters", size.parts, _CELLS)},
        warnings=(*model.notes, *([SHADOWED.format(name=model.name)] if shadowed else [])),
        notes=(
            "Caches in bf16, recurrent states in fp32; add the published counts to the file to have them compared.",
            f"Use it: rlsize profiles show {model.name} --profiles {folder}",
        ),
    )


def list_report(profiles: Mapping[str, Sequence[tuple[str, Any]]]) -> Report:
    """
    What there is.

    Args:
        profiles: Name and profile of each, by kind.
    """
    counts = {kind: len(named) for kind, named in profiles.items()}
    told = [f"{count} {TITLES[kind] if kind == 'gpu' else TITLES[kind].lower()}" for kind, count in counts.items()]
    results = {f"{kind}_profiles": count for kind, count in counts.items()}
    return Report(
        whole=True,
        headline=", ".join(told) or "no profiles",
        results=tuple(Figure(key=key, value=count, source="the profile folders") for key, count in results.items()),
        quiet=frozenset(results),
        tables={kind: _table(kind, named) for kind, named in profiles.items()},
        notes=("`rlsize profiles show NAME` prints every number of one with its source.",),
    )


def check_report(counts: Mapping[str, int]) -> Report:
    """
    A check that found nothing wrong.

    Args:
        counts: Profiles that were checked, by kind.
    """
    cells = (Column("kind", "kind", "left", of=str), Column("profiles", "profiles", of=counts.__getitem__))
    total = sum(counts.values())
    return Report(
        headline=f"{total} {'profile' if total == 1 else 'profiles'} checked, no fault found",
        results=(Figure(key="profiles", value=total, source="the profile folders"), Figure(key="faults", value=0)),
        quiet=frozenset({"profiles", "faults"}),
        tables={"kinds": Table.of("", counts, cells)},
    )


def _table(kind: str, named: Sequence[tuple[str, Any]]) -> Table:
    columns = tuple(  # a mark may wrap, a name not
        Column(key, title, "left" if key in _LEFT else "right", wide=key not in _LEFT or key in _WRAPPING)
        for key, title in _COLUMNS[kind]
    )
    rows = tuple(_row(kind, name, profile) for name, profile in named)
    return Table(title=TITLES[kind], columns=columns, rows=rows, note=_NOTES.get(kind, ""))


def _row(kind: str, name: str, profile: Any) -> dict[str, Cell]:
    told = {"name": name, **_ROWS[kind](profile), "unverified": ", ".join(unverified(profile))}
    return {key: _cell(key, value) for key, value in told.items()}


def _cell(key: str, value: Cell | Sourced) -> Cell:
    """A value as it stands; one that has a source keeps it."""
    if not isinstance(value, Sourced):
        return value
    return Figure(key=key, value=value.value, provenance="default", source=value.source, verified=value.verified)


def _gpu_row(gpu: Gpu) -> dict[str, Any]:
    specification = gpu.specification
    return {
        "title": gpu.title,
        "link": specification.scale_up.link,
        "bf16_flops": specification.bf16_dense,
        "fp8_flops": specification.fp8_dense,
        "fp4_flops": specification.fp4_dense,
        "memory_bytes": specification.memory,
        "memory_usable_bytes": specification.memory_usable,
        "memory_bandwidth_bytes_per_second": specification.memory_bandwidth,
        "scale_up_bytes_per_second": specification.scale_up.bandwidth_one_direction,
        "nic_bytes_per_second": specification.nic,
        "power_watts": specification.power,
    }


def _link_row(link: Link) -> dict[str, Any]:
    specification, fraction = link.specification, achievable_fraction(link)
    says = ""
    if fraction is not None:
        measured = link.measured is not None and fraction is link.measured.achievable_fraction
        says = "measured" if measured else "assumed" if fraction.verified else "carried over"
    return {
        "title": link.title,
        "scope": specification.scope,
        "one_direction_bytes_per_second": specification.bandwidth_one_direction,
        "both_directions_bytes_per_second": specification.bandwidth_both_directions,
        "achievable_fraction": fraction.value if fraction else None,
        "reached_says": says,
    }


def _model_row(model: Model) -> dict[str, Any]:
    computed, total, active = model.computed, model.published_params, model.published_active_params
    params = computed.params if computed else total.value if total else None
    active_params = computed.active_params if computed else active.value if active else None
    return {
        "title": model.title,
        "total": _billions(params),
        "active": _billions(active_params),
        "total_params": params,
        "active_params": active_params,
        "kv_bytes_per_token": computed.kv_bytes_per_token if computed else None,
    }


def _billions(params: float | None) -> str | None:
    return None if params is None else f"{params / 1e9:.2f}B"


def _price_row(price: Price) -> dict[str, Any]:
    said = {key: getattr(price, key) for key in ("cloud", "instance", "gpu", "gpu_listed")}
    said |= {"per_gpu_hour_usd": price.usd_per_gpu_hour, "spot_per_gpu_hour_usd": price.spot_usd_per_gpu_hour}
    return said | {key: getattr(price, key) for key in ("region", "commitment", "as_of", "as_of_meaning", "trust")}


def _cluster_row(cluster: Cluster) -> dict[str, Any]:
    return {
        "title": cluster.title,
        "gpu": cluster.gpu,
        "node_gpus": cluster.gpus_per_node,
        "scale_up": cluster.scale_up,
        "interconnect": cluster.interconnect,
        "nic_bytes_per_second": cluster.nic,
    }


def _rates_row(rates: Rates) -> dict[str, Any]:
    instance = rates.instance_tokens_per_second
    return {
        "instance_tokens_per_second": instance.mean if instance else None,
        "train_seconds": rates.train_seconds,
        "measured_at": rates.measured_at,
    }


def _framework_row(framework: Framework) -> dict[str, Any]:
    runs = framework.runs
    modes = f"as {framework.parent}" if runs is None else ", ".join(runs.modes)
    return {
        "title": framework.title,
        "parent": framework.parent,
        "modes": modes,
        "backends": ", ".join(() if runs is None else runs.layouts),
        "engines": ", ".join(() if runs is None else runs.engines),
        "read_at": framework.source,
    }


_ROWS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "gpu": _gpu_row, "link": _link_row, "model": _model_row,
    "price": _price_row, "cluster": _cluster_row, "rates": _rates_row,
    "framework": _framework_row,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """
    One value of a profile.

    Args:
        path: Its dotted path.
        value: The bare value.
        unit: Its base unit; empty for words, counts and ratios.
        source: The key of the profile's sources; empty where the field has none.
        verified: False where nobody has verified it.
        note: What to know about it.
    """

    path: str
    value: Any
    unit: str = ""
    source: str = ""
    verified: bool = True
    note: str = ""

    @property
    def shown(self) -> str:
        """The value for people, marked where nobody has verified it."""
        text = show(self.value, _ENDINGS.get(self.unit, ""))
        return text if self.verified else f"{text} (unverified)"


def profile_page(kind: str, name: str, profile: Any, path: str) -> Report:
    """
    All that one profile says.

    Args:
        kind: Its kind.
        name: Its name.
        profile: The profile.
        path: Its file.
    """
    doubtful, aliases = unverified(profile), getattr(profile, "aliases", ())
    also = [f"also called: {', '.join(aliases)}"] if aliases else []
    results: dict[str, Value] = {"kind": kind, "name": name, "file": path, "unverified_numbers": len(doubtful)}
    return Report(
        whole=True,
        headline=f"{getattr(profile, 'title', name)} ({kind} {name})",
        results=tuple(Figure(key=key, value=value, source=path) for key, value in results.items()),
        quiet=frozenset(results),
        tables=_tables(profile, long_keys=kind == "framework"),
        warnings=(f"nobody has verified {', '.join(doubtful)}",) if doubtful else (),
        notes=(*getattr(profile, "notes", ()), *also, f"file: {path}"),
    )


def entries(fact: Any, path: str = "", above: tuple[str, bool] | None = None) -> Iterator[Entry]:
    """
    Every value of a fact, in the order of its fields, without those that are absent.

    Args:
        fact: A profile, or a part of one.
        path: Its dotted path.
        above: Source, and whether it is verified, of the fact that holds it, for values that have none of their own.
    """
    hints = get_type_hints(type(fact), include_extras=True)
    for field in dataclasses.fields(fact):
        value, where = getattr(fact, field.name), f"{path}.{field.name}" if path else field.name
        if where not in _APART and not (above and field.name in {"source", "verified"}):
            yield from _values(value, where, _unit(hints[field.name]), above)


def _values(value: Any, path: str, unit: str, above: tuple[str, bool] | None) -> Iterator[Entry]:
    if value is None or value in ("", (), [], {}):
        return
    if isinstance(value, Sourced):
        yield Entry(path, value.value, unit, value.source, value.verified, value.note)
    elif isinstance(value, Uncertain):
        yield Entry(path, value.value, unit)
    elif isinstance(value, (Mapping, list, tuple)):
        for key, part in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _values(part, f"{path}.{key}", unit, above)
    elif dataclasses.is_dataclass(value):
        source = getattr(value, "source", None)
        named = (source, getattr(value, "verified", True)) if isinstance(source, str) else above
        yield from entries(value, path, named)
    else:
        source, verified = above or ("", True)
        yield Entry(path, value, unit, source, verified)


def _unit(hint: Any) -> str:
    """The unit that a field's annotation declares, at any depth."""
    for part in (*getattr(hint, "__metadata__", ()), *get_args(hint)):
        found = part.unit if isinstance(part, Quantity) else _unit(part)
        if found:
            return found
    return ""


def _tables(profile: Any, *, long_keys: bool) -> dict[str, Table]:
    """The values by section; where keys are long, they may wrap too."""
    sections: dict[str, list[Entry]] = {}
    for entry in entries(profile):
        head, _, rest = entry.path.partition(".")
        sections.setdefault(head if rest and rest != "value" else "general", []).append(entry)
    tables = {section: _section(section, found, long_keys=long_keys) for section, found in sections.items()}
    sources = getattr(profile, "sources", {})
    if sources:
        rows = tuple({"key": key, "says": text} for key, text in sources.items())
        tables["sources"] = Table(title="sources", columns=_SOURCE_COLUMNS, rows=rows)
    return tables


def _section(section: str, found: list[Entry], *, long_keys: bool) -> Table:
    def name(entry: Entry) -> str:
        return entry.path.removeprefix(f"{section}.").replace(".", " ").replace("_", " ")

    def told(entry: Entry) -> str:
        return f"{entry.shown}; {entry.note}" if entry.note else entry.shown

    sourced = any(entry.source for entry in found)
    cells: tuple[Column | Unseen, ...] = (
        Column("entry", "", "left", wide=long_keys, of=name),
        Column("shown", "value", "left", wide=True, of=told),
        Column("source", "source", "left", wide=long_keys) if sourced else Unseen("source"),
        *map(Unseen, ("path", "value", "unit", "verified", "note")),
    )
    return Table.of(section, found, cells)
