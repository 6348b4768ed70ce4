"""A framework of RL post-training: how it is launched and told, what its keys mean, and what it can run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from rlsize.facts.fields import Says


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """Versions of a framework in which something else holds than in the one that was read."""

    below: Annotated[str, Says("The first version in which it no longer holds.")]
    signs: Annotated[tuple[str, ...], Says("Keys, and values as key=value, that only these versions take.")] = ()
    package: Annotated[str, Says("The name of a package that these versions had, and that counts by itself.")] = ""
    older_names: Annotated[bool, Says("Whether its keys have the older names of `renamed`.")] = False
    defaults: Annotated[dict[str, Any], Says("Defaults of keys in these versions.")] = field(default_factory=dict)
    quantities: Annotated[dict[str, str], Says("What quantities follow from in these versions.")] = field(
        default_factory=dict
    )
    lacks: Annotated[tuple[str, ...], Says("Keys that these versions do not have yet: none is written.")] = ()
    later: Annotated[tuple[str, ...], Says("Trainers of `variants` that came after them.")] = ()
    refuses: Annotated[
        dict[str, tuple[str, ...]], Says("Modes that these versions cannot run: why, and what does.")
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a framework can run."""

    modes: Annotated[dict[str, str], Says("Modes that it runs, and what is done with samples that come too late.")]
    layouts: Annotated[
        dict[str, tuple[str, ...]],
        Says("Kinds of parallelism that each of its trainers takes, by backend; uneven: stages of unlike many layers."),
    ]
    engines: Annotated[tuple[str, ...], Says("Inference engines that it runs.")] = ("vllm",)
    zero_stages: Annotated[tuple[int, ...], Says("ZeRO stages of its trainers; 3 is FSDP.")] = (3,)
    recomputes: Annotated[tuple[str, ...], Says("What its trainers may compute again in backward.")] = (
        "none", "selective", "full",
    )  # fmt: skip
    whole_shares: Annotated[bool, Says("Whether a rank trains its whole share of a batch as one micro-batch.")] = False
    offloads: Annotated[dict[str, str], Says("Keys that move states to the host, and what each really frees.")] = field(
        default_factory=dict
    )
    peaks: Annotated[dict[str, str], Says("Phases in which its memory peaks, and why.")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One of the ways in which a framework runs a loop, as a new launch has it."""

    modes: Annotated[tuple[str, ...], Says("Modes that it runs.")]
    command: Annotated[str, Says("What its keys follow, with those of the launcher for {launcher}; empty: a file.")] = (
        ""
    )
    server: Annotated[str, Says("What starts its engines, where they are a process of their own.")] = ""
    form: Annotated[
        str, Says("How its keys are written: overrides, flags, dashes (flags with dashes), yaml, toml.")
    ] = "overrides"
    sets: Annotated[dict[str, Any], Says("Keys that make it run so.")] = field(default_factory=dict)
    by_syncs: Annotated[bool, Says("Whether its step lasts from one weight sync to the next.")] = False
    fractional: Annotated[bool, Says("Whether its staleness cap may be a fraction of such a step.")] = False
    demands: Annotated[
        dict[str, str], Says("Expressions that must hold, each with what is wrong where it does not.")
    ] = field(default_factory=dict)
    notes: Annotated[tuple[str, ...], Says("What one should know about it.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """A framework, as data."""

    name: Annotated[str, Says("Name of the profile, and of its file.")]
    title: Annotated[str, Says("Full name, for tables.")]
    aliases: Annotated[tuple[str, ...], Says("Other names that people type.")] = ()
    parent: Annotated[str, Says("The framework that it is a fork of: what is not said here holds as there.")] = ""
    source: Annotated[str, Says("Repository, version and commit at which its keys were read.")]
    programs: Annotated[tuple[str, ...], Says("Words that launch it: a module, a script's name, or two words.")] = ()
    parts: Annotated[
        dict[str, str],
        Says("Words that launch a part of it: what stands before the keys of its own configuration."),
    ] = field(default_factory=dict)
    servers: Annotated[tuple[str, ...], Says("Words that launch its engines in a process of their own.")] = ()
    signs: Annotated[
        tuple[str, ...], Says("Keys by which its configuration is told; the more of them, the surer.")
    ] = ()
    configurations: Annotated[tuple[str, ...], Says("Flags that name its configuration file.")] = ("config",)
    renamed: Annotated[dict[str, str], Says("The key of today by each older key.")] = field(default_factory=dict)
    older_names: Annotated[bool, Says("Whether its keys are written by their older names.")] = False
    defaults: Annotated[dict[str, Any], Says("What holds where a key is not set, in the version that was read.")] = (
        field(default_factory=dict)
    )
    base: Annotated[str, Says("The configuration whose values `defaults` has, with * for any text; empty: none.")] = ""
    fitted: Annotated[
        tuple[str, ...],
        Says("Keys that others set otherwise, to suit their model: unknown where one of those is named and missing."),
    ] = ()
    eras: Annotated[tuple[Era, ...], Says("Older versions, the oldest first.")] = ()
    quantities: Annotated[
        dict[str, str],
        Says(
            "Each quantity, as an expression over keys, and over other quantities as `loop.NAME`; those whose names "
            "begin with _ only serve others."
        ),
    ] = field(default_factory=dict)
    writes: Annotated[
        dict[str, str], Says("How a key is written, as an expression over `loop.NAME`; plain keys need none.")
    ] = field(default_factory=dict)
    variants: Annotated[dict[str, Variant], Says("Its trainers, the one that is preferred for a mode first.")] = field(
        default_factory=dict
    )
    demands: Annotated[dict[str, str], Says("What must hold for each of them, as in a variant.")] = field(
        default_factory=dict
    )
    asserts: Annotated[
        dict[str, str],
        Says("Expressions over keys that its code checks as it starts, each with its words where one does not hold."),
    ] = field(default_factory=dict)
    uncounted: Annotated[
        dict[str, str], Says("Expressions over keys that hold where a launch does what is not counted, each with what.")
    ] = field(default_factory=dict)
    refuses: Annotated[
        dict[str, tuple[str, ...]], Says("Modes that it cannot run: why, and the mode that comes nearest.")
    ] = field(default_factory=dict)
    lacks: Annotated[tuple[str, ...], Says("Keys that are never written, as this version does not have them.")] = ()
    together: Annotated[
        tuple[str, ...],
        Says("Keys that its code asks for beside others: written with them, though no quantity hangs on them."),
    ] = ()
    silent: Annotated[tuple[str, ...], Says("Keys that bear on nothing here, with * for any text.")] = ()
    unread: Annotated[tuple[str, ...], Says("Keys that nobody has read in the framework's source.")] = ()
    runs: Annotated[Abilities | None, Says("What it can run.")] = None
    notes: Annotated[tuple[str, ...], Says("What one should know about it.")] = ()
