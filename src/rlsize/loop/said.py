"""What a loop is made from: something that answers for quantities, however they were said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.errors import Fault, InputError
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.constants import Stage
    from rlsize.facts.calibration import Calibration, CalibrationSetting
    from rlsize.facts.figure import Figure, Value
    from rlsize.facts.framework import Framework
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.link import Cluster
    from rlsize.facts.model import Model
    from rlsize.facts.price import Price
    from rlsize.facts.rates import Rates


def cannot_run(reason: str) -> str:
    """The sentence by which every command says that a loop cannot run, and why."""
    return f"The loop cannot run: {reason}."


class Said(Protocol):
    """
    What was said, by flags, a scenario, a saved plan or a rates file.

    Args:
        faults: All that is wrong so far.
        used: What was asked for, by key: the inputs of the answer.
        warnings: What the reader must know.
        notes: What explains the answer.
        rates: The rates file that was named, once it is loaded.
        rates_name: Its name.
        refused: Why the loop that was said cannot run; empty where it can, or where none was resolved.
        rates_failed: Whether it could not be read; the fault is noted.
        ran: Whether a log says that just this has run, so that it fits.
    """

    faults: list[Fault]
    used: dict[str, Figure]
    warnings: list[str]
    notes: list[str]
    rates: Rates | None
    rates_name: str
    refused: str
    rates_failed: bool
    ran: bool

    def ask(self, key: str, *, default: float | None = None, why: str = "", assume: bool = True) -> Figure:
        """A quantity; one that names the flag where nobody says it."""

    def choose(self, key: str, known: Iterable[str] | None = None, *, default: str | None = None, why: str = "") -> str:
        """A word."""

    def yes(self, key: str) -> bool | None:
        """A switch; None where nobody says."""

    def can_turn(self, key: str) -> bool:
        """Whether the keys of a launch can say a switch otherwise than they do; yes where there is no launch."""

    def listed(self, key: str) -> tuple[str, ...] | None:
        """The words of a list, which may be empty; None where nobody says."""

    def name(self, key: str) -> tuple[str | None, str]:
        """A name, and where it was said."""

    def gives(self, key: str) -> bool:
        """Whether anybody says a quantity."""

    def follows_gpus(self, key: str) -> bool:
        """Whether a launch that tells no GPUs tells a quantity as soon as somebody says how many there are."""

    def by_flag(self, key: str) -> bool:
        """Whether a flag says it."""

    def said(self, key: str) -> Any:  # noqa: ANN401 (any value of a scenario)
        """What the scenario says at a dotted key."""

    def flag(self, key: str) -> str:
        """How a quantity is said."""

    def way(self, *keys: str) -> str:
        """How this command is told one of several: by the first that it has a flag for, else by `--set`."""

    def place(self, key: str) -> str:
        """Where a quantity was said."""

    def keep(self, figure: Figure) -> Figure:
        """Note a figure among the inputs."""

    def drop(self, key: str) -> None:
        """Take a quantity back that something else stands for."""

    def fault(self, what: str, where: str = "", todo: str = "") -> None:
        """Note something that is wrong."""

    def blame(self, error: InputError, where: str) -> None:
        """Note the faults of an error."""

    def need(self, figure: Figure, todo: str) -> None:
        """Note a fault if a figure is missing."""

    def settle(self) -> None:
        """Go on if nothing is wrong."""

    def apart(self) -> Said:
        """The same, to ask on without a trace."""

    def instead(self, **texts: Value) -> Said:
        """The same apart, where some quantities are said otherwise."""

    def changed(self, values: Mapping[str, Value | list[str]]) -> Said:
        """
        The same apart, where a scenario says some things otherwise, and no flag does.

        Args:
            values: What it says, by dotted key; None where it no longer says anything.
        """

    def model(self) -> Model | None:
        """The model's profile; None where none is named, or where a fault was noted."""

    # a profile; None where there is none of that name, which is noted with where it was named
    @overload
    def profile(self, kind: Literal["model"], name: str, where: str) -> Model | None: ...

    @overload
    def profile(self, kind: Literal["gpu"], name: str, where: str) -> Gpu | None: ...

    @overload
    def profile(self, kind: Literal["price"], name: str, where: str) -> Price | None: ...

    def framework(self) -> Framework | None:
        """The framework that runs the loop; None where none is named, or where a fault was noted."""

    def load_rates(self) -> None:
        """Read the rates file that is named, if one is; faults and doubts are noted."""

    def measured(self, key: str, missing: Figure) -> Figure:
        """What the rates file says of a quantity; the missing figure where it says nothing."""

    def belief(self, *stages: Stage, planned: CalibrationSetting | None = None) -> Belief:
        """What is believed about the constants of some stages: the prior, or what a calibration says."""

    def calibration(self) -> Calibration | None:
        """The calibration that is named; None where none is."""

    def cluster(self) -> Cluster | None:
        """The cluster's profile; None where none is named, or where a fault was noted."""

    def gpu(self, side: str = "") -> Gpu | None:
        """The GPU's profile, of both sides or of one; None where none is named, or where a fault was noted."""
