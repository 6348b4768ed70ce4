"""
Asks every command about one loop, and finds what they answer differently.

A key stands for one quantity of the loop as stated, so two commands that use the same key give the same value and the
same band; what is about another loop (the match, the best plan) needs a key of its own. Nothing is excepted.

Every disagreement of some random loops, or of files of one's own:

    python -m tests.loop.one_answer 20
    python -m tests.loop.one_answer scenario.yaml plan.yaml
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import yaml
from typer.testing import CliRunner

# What each command needs beside the loop: little of what takes long, and a file to write or a limit to judge.
COMMANDS: dict[str, tuple[str, ...]] = {
    "predict step": (),
    "predict train": (),
    "predict rollout": (),
    "predict sync": (),
    "sync": (),
    "cost": (),
    "iteration": (),
    "backlog": (),
    "whatif": ("--own-only",),
    "memory": (),
    "fleet": (),
    "split": (),
    "check": ("--budget", "{folder}/budget.yaml"),
    "plan": ("--save", "{plan}", "--force"),
    "simulate": ("--steps", "1", "--seeds", "1"),
    "report": ("--output", "{folder}/page.md", "--force"),
}
SEARCHES = frozenset({"plan", "report"})  # answer with a loop that can run where the one as stated cannot
OWN_CLOCK = (
    "simulate"  # measures the loop anew, event by event: its inputs are those of the others, its results are not
)
BUDGET = "rlsize: {kind: budget, version: 1}\ngpus: 1000000000\n"  # never what a loop fails by
HEAD = "rlsize: {kind: scenario, version: 1}\n"
NEAR = 1e-6
CRASH = 99
_PLACE = re.compile(r"^(?:\S+\.yaml:\d+(?:: [\w.]+)?|\S+\.yaml|--[\w-]+|[\w]+\.[\w.]+): ")


@dataclass(frozen=True)
class Said:
    """A value and its band, as one command tells them."""

    value: Any
    band: tuple[float, float] | None = None

    def __str__(self) -> str:
        number = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        text = f"{self.value:.8g}" if number else str(self.value)
        return text if self.band is None else f"{text} ({self.band[0]:.8g} to {self.band[1]:.8g})"


@dataclass(frozen=True)
class Answer:
    """What one command said about a loop: its exit code, its JSON, and what it told on stderr."""

    command: str
    code: int
    document: Mapping[str, Any]
    told: str

    @property
    def fault(self) -> str:
        """The first thing that is wrong, with its place; empty where the command answered."""
        found = re.search(r"^error: (.*)$", self.told, re.MULTILINE)
        return "" if self.document else found[1] if found else self.told.strip()

    @property
    def words(self) -> str:
        """Why not: the first fault, without its place; of an answer of no, its first warning, else its headline."""
        if self.document and self.code:
            return str((*self.document["warnings"], self.document["headline"])[0])
        return _PLACE.sub("", self.fault)

    @cached_property
    def prose(self) -> str:
        """Headline, warnings and notes, and all that stderr has."""
        parts = [self.document.get("headline", ""), *self.document.get("warnings", []), *self.document.get("notes", [])]
        return "\n".join([*map(str, parts), self.told])

    @cached_property
    def figures(self) -> list[tuple[str, str, Said]]:
        """Each key with where the command tells it and what; a row of a table counts where it is the loop as stated."""
        told: list[tuple[str, str, Said]] = []
        explain = self.document.get("explain", {})
        results = {} if self.command == OWN_CLOCK else self.document.get("results", {})
        for part, values in (("inputs", self.document.get("inputs", {})), ("results", results)):
            for key, value in values.items():
                entry = explain.get(f"{part}.{key}") or explain.get(key) or {}
                band = entry.get("band")
                told.append((key, f"{self.command} ({part})", Said(value, tuple(band) if band else None)))
        for name, rows in self.document.get("rows", {}).items():
            mine: dict[str, Any] = next((row for row in rows if row.get("verdict") == "yours"), {})
            told += [(key, f"{self.command} ({name}, yours)", Said(value)) for key, value in mine.items()]
        return told

    def uses(self, key: str, value: object) -> bool:
        """Whether a scenario's key is among the inputs or limits judged, or named in warnings or notes as not used."""
        explain: Mapping[str, Mapping[str, Any]] = self.document.get("explain", {})
        if any(re.search(rf": {re.escape(key)}(?![\w.])", str(entry.get("source"))) for entry in explain.values()):
            return True
        leaf = key.rpartition(".")[2]
        entry = explain.get(f"inputs.{leaf}") or explain.get(leaf) or {}
        if entry.get("provenance") != "default" and same(self.document["inputs"].get(leaf), value):
            return True
        limits = [row for rows in self.document["rows"].values() for row in rows if "limit" in row]
        if any((row.get("quantity"), row["limit"]) == (leaf, value) for row in limits):
            return True
        return re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", self.prose) is not None


@dataclass(frozen=True)
class Disagreement:
    """One thing about a loop that commands say differently: what it is, and who says what."""

    what: str
    said: Mapping[str, str]

    def __str__(self) -> str:
        by_text: dict[str, list[str]] = {}
        for command, text in self.said.items():
            by_text.setdefault(text, []).append(command)
        return "\n".join([self.what, *(f"    {text}  <- {', '.join(names)}" for text, names in by_text.items())])


@dataclass
class Desk:
    """
    Where commands are asked, in this process; the same question is asked once.

    Args:
        folder: An empty folder for files.
    """

    folder: Path
    asked: dict[tuple[str, ...], Answer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "budget.yaml").write_text(BUDGET, "utf-8")
        (self.folder / "plans").mkdir()

    def file(self, text: str, name: str = "loop.yaml") -> str:
        """The path of a file with this text; files of other texts under the same name stay as they are."""
        for number in range(1_000_000):
            path = self.folder / str(number) / name
            if not path.exists():
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, "utf-8")
            if path.read_text("utf-8") == text:
                return str(path)
        raise AssertionError("too many files")

    def ask(self, command: str, path: str, *more: str) -> Answer:
        """What a command says about a file, with more flags if need be."""
        extra = [flag.format(folder=self.folder, plan=self._plan(path)) for flag in COMMANDS[command]]
        if command == "check" and "\nbudget:" in Path(path).read_text("utf-8"):
            extra = []  # a budget of its own, that a file of limits would go before
        line = (*command.split(), path, "--json", *extra, *more)
        if line not in self.asked:
            self.asked[line] = _answer(command, line)
        return self.asked[line]

    def ask_all(self, path: str) -> list[Answer]:
        """What every command says about a file."""
        return [self.ask(command, path) for command in COMMANDS]

    def told(self, text: str, key: str) -> dict[str, Any]:
        """The values of a key, by who tells it, for a scenario."""
        answers = self.ask_all(self.file(text))
        return {where: said.value for answer in answers for name, where, said in answer.figures if name == key}

    def saved_plan(self, path: str) -> str | None:
        """The path of the plan that `plan --save` writes for a scenario; None where there is no plan."""
        self.ask("plan", path)
        return str(self._plan(path)) if self._plan(path).exists() else None

    def _plan(self, path: str) -> Path:
        """Where the plan of a file is saved: a scenario that lies elsewhere gets no neighbour."""
        return self.folder / "plans" / f"{hashlib.sha256(path.encode()).hexdigest()[:12]}.yaml"


def _answer(command: str, line: tuple[str, ...]) -> Answer:
    from rlsize.shell.app import app

    ran = CliRunner().invoke(app, list(line), env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"})
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        return Answer(command, CRASH, {}, f"error: crashed: {ran.exception!r}")
    try:
        document = json.loads(ran.stdout)
    except ValueError:
        document = {}
    return Answer(command, ran.exit_code, document, ran.stderr)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, numbers to a millionth; a value that is not known is like no number."""
    numbers = [isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, other)]
    if all(numbers):
        return math.isclose(one, other, rel_tol=NEAR, abs_tol=1e-12)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def numbers(answers: Iterable[Answer], also: Iterable[tuple[str, str, Said]] = ()) -> Iterator[Disagreement]:
    """
    Keys that two commands have, or one command twice, and tell differently: other values, or other bands.

    Args:
        answers: What commands said.
        also: What a saved plan says of itself.
    """
    by_key: dict[str, dict[str, Said]] = {}
    for key, where, said in [*also, *(figure for answer in answers for figure in answer.figures)]:
        by_key.setdefault(key, {})[where] = said
    for key, told in sorted(by_key.items()):
        first = next(iter(told.values()))
        # Rows of a table have no bands, and an input is told as it was said, with its ± in place of a band.
        full = [said for where, said in told.items() if "yours" not in where and (said.band or "(inputs)" not in where)]
        if not all(same(said.value, first.value) for said in told.values()):
            yield Disagreement(f"value of {key}", {where: str(Said(said.value)) for where, said in told.items()})
        elif full and not all(same(said.band, full[0].band) for said in full):
            yield Disagreement(f"band of {key}", {where: str(said) for where, said in told.items()})


def verdicts(answers: Iterable[Answer], bound: str = "") -> Iterator[Disagreement]:
    """
    Whether all answer or all refuse, in the same words.

    Args:
        answers: What commands said.
        bound: A section of the scenario that rules hold where rates are predicted: beside given ones numbers are
            bounds, said in the headline, and a command that needs more than a bound refuses by naming the section.
    """
    everyone = list(answers)
    judged = [answer for answer in everyone if not (bound and answer.code and bound in answer.fault)]
    crashed = {answer.command: answer.fault for answer in judged if answer.code == CRASH}
    if crashed:
        yield Disagreement("crash", crashed)
    unknown = {answer.command: answer.fault for answer in judged if " is unknown" in answer.fault}
    if unknown:
        yield Disagreement("a key or word of this file that is not known", unknown)
    # A search finds another loop that can be, and says of the one that cannot why not, in the words of all.
    replaced = [answer for answer in judged if answer.command in SEARCHES and not answer.code]
    verdict = {a.command: f"exit {a.code}: {a.fault or a.document['headline']}" for a in judged}
    refused = [answer for answer in judged if answer.fault]
    why = next((answer.words for answer in [*refused, *judged] if answer.code), "")
    if len({answer.code == 0 for answer in judged if answer not in replaced}) > 1:
        yield Disagreement("whether the loop can be", verdict)
    elif len({answer.fault for answer in refused}) > 1 or any(why not in answer.prose for answer in judged):
        yield Disagreement("words of the refusal", verdict)
    steps = [a for a in judged if a.code == 0 and a.command != OWN_CLOCK and "step_seconds" in a.document["results"]]
    heads = {answer.command: str(answer.document["headline"]) for answer in steps if bound}
    if len({"at least" in headline for headline in heads.values()}) > 1:
        yield Disagreement(f"a step with {bound}: not told by all as a bound (at least ...), or by none", heads)


def leaves(text: str) -> dict[str, Any]:
    """The dotted keys of a scenario that hold a value."""

    def walk(node: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for key, value in node.items():
            if isinstance(value, dict):
                yield from walk(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    document = yaml.safe_load(text)
    return dict(walk({key: value for key, value in document.items() if key != "rlsize"}, ""))


def silences(answers: Iterable[Answer], text: str) -> Iterator[Disagreement]:
    """Keys of the scenario that a command which answers neither has among its inputs nor names as not used."""
    said = leaves(text)
    silent: dict[str, dict[str, str]] = {}
    for answer in answers:
        if answer.document:
            for key in (key for key, value in said.items() if not answer.uses(key, value)):
                silent.setdefault(key, {})[answer.command] = "neither among the inputs nor named as not used"
    for key, commands in sorted(silent.items()):
        yield Disagreement(f"silence about {key}", commands)


def of_plan(text: str) -> Iterator[tuple[str, str, Said]]:
    """What a saved plan says of itself."""
    document = yaml.safe_load(text)
    for part in ("placement", "results"):  # its inputs are those of the search, of which it is one outcome
        for key, entry in document.get(part, {}).items():
            ends = (entry["low"], entry["high"]) if "low" in entry else None
            yield key, f"the plan file ({part})", Said(entry.get("value"), ends)


def disagreements(desk: Desk, path: str) -> list[Disagreement]:
    """All that commands say differently about the loop in a scenario or a saved plan."""
    text = Path(path).read_text("utf-8")
    document = yaml.safe_load(text)
    scenario = document["rlsize"]["kind"] == "scenario"
    answers = desk.ask_all(path)
    found = [*verdicts(answers, "agents" if "agents" in document else "")]
    if not scenario and any(answer.fault for answer in answers):
        refused = {answer.command: answer.fault for answer in answers if answer.fault}
        found.append(Disagreement("a saved plan is refused, and it was worked out", refused))
    found += numbers(answers, () if scenario else of_plan(text))
    found += silences(answers, text) if scenario else ()
    return found


MODELS = ("qwen3-8b", "qwen3-14b", "qwen3-32b", "llama3.1-8b", "qwen2.5-7b", "qwen3-30b-a3b", "qwen2.5-14b")
GPUS = ("h100-sxm", "h200-sxm", "a100-80-sxm")
MODES = ("async", "colocated", "disaggregated", "one-step-off")
WIDTHS = ("{fsdp: %d}", "{tensor: 2, data: %d}", "{tensor: 2, data: %d, zero: 1}")


@dataclass(frozen=True)
class Loop:
    """
    A loop to ask about; what is None is not said.

    Args:
        model: Its profile.
        gpu: Profile of the GPUs.
        gpus: GPUs in all.
        mode: How its sides run in time.
        split: Whether GPUs of both pools, those in all, or all three numbers are said.
        mean: Mean response length. [token]
        cv: Its coefficient of variation.
        cap: Longest response, as a multiple of the mean.
        prompts: Prompts per optimizer step.
        tensor: GPUs of a rollout instance.
        parallelism: How the trainer is spread, with a place for the number of ranks.
        lora_rank: Rank of its adapters.
        offload: Whether optimizer states live on the host.
        agents: Tools and turns, as YAML.
        rates: Measured rates, as YAML.
        max_staleness: Staleness cap.
        prices: As YAML.
        rollout_gpu: Profile of the rollout pool's GPUs, where it has others than the trainer.
        budget: Limits, as YAML.
        engine: What is said of the engine's cache and load beside its layout.
        saved: Whether commands are asked about the plan that `plan --save` makes of it.
        policies: What becomes of late samples, and how many more are started than a batch needs, as YAML.
        framework: Whose rules hold where nobody says.
        sync: How weights reach the instances, as YAML.
        trouble: What goes wrong, as YAML.
    """

    model: str
    gpu: str
    gpus: int
    mode: str
    split: str
    mean: int
    cv: float | None
    cap: int | None
    prompts: int
    tensor: int | None
    parallelism: str | None
    lora_rank: int | None
    offload: bool | None
    agents: str | None
    rates: str | None
    max_staleness: float | None
    prices: str
    rollout_gpu: str | None
    budget: str | None
    engine: Mapping[str, object]
    saved: bool
    policies: str | None
    framework: str | None
    sync: str | None
    trouble: str | None

    @property
    def text(self) -> str:
        """It as a scenario."""
        shared = self.mode == "colocated"
        trainer = self.gpus if shared else self.gpus // 2
        whole = self.gpus if shared or self.split != "pools" else None
        pools = {} if shared or self.split == "total" else {"trainer_gpus": trainer, "rollout_gpus": trainer}
        ranks = self.parallelism and self.parallelism % (trainer // (1 if "fsdp" in self.parallelism else 2))
        lengths = _flow(mean=self.mean, cv=self.cv, max=self.cap and self.cap * self.mean)
        sections = {
            "model": self.model,
            "cluster": _flow(gpu=self.gpu, gpus=whole, rollout_gpu=None if shared else self.rollout_gpu),
            "workload": _flow(prompts_per_step=self.prompts, group_size=8, prompt_tokens=300, response_tokens=lengths),
            "placement": _flow(mode=self.mode, max_staleness=self.max_staleness, **pools),
            "rollout": _flow(tensor_parallel=self.tensor, **self.engine),
            "trainer": _flow(lora_rank=self.lora_rank, offload=self.offload, parallelism=ranks),
            "agents": self.agents,
            "policies": self.policies,
            "weight_sync": self.sync,
            "trouble": self.trouble,
            "framework": self.framework,
            "rates": self.rates,
            "prices": self.prices,
            "budget": self.budget,
        }
        return HEAD + "".join(f"{key}: {value}\n" for key, value in sections.items() if value not in (None, "{}"))


def _flow(**said: object) -> str:
    pairs = [f"{key}: {str(value).lower()}" for key, value in said.items() if value is not None]
    return f"{{{', '.join(pairs)}}}"


def random_loop(number: int) -> Loop:
    """One of many random loops, the same one for the same number; modes take turns."""
    random = Random(number)

    def seldom(*values: Any, once_in: int = 4) -> Any:
        return random.choice(values) if random.randrange(once_in) == 0 else None

    return Loop(
        model=random.choice(MODELS),
        gpu=random.choice(GPUS),
        gpus=random.choice((8, 16, 32, 64)),
        mode=MODES[number % len(MODES)],
        split=random.choice(("pools", "total", "both")),
        mean=random.choice((800, 1536, 3000, 4096)),
        cv=random.choice((None, 0.6, 1.2)),
        cap=random.choice((None, 3, 8)),
        prompts=random.choice((32, 48)),
        tensor=random.choice((None, 1, 2, 4)),
        parallelism=seldom(*WIDTHS, once_in=2),
        lora_rank=seldom(16, 64),
        offload=seldom(True, once_in=6),
        agents=seldom(
            "{turns: 4, tool_seconds: 20, tool_tokens: 200}",
            "{verify_seconds: 30}",
            "{environments: 64, verify_seconds: 9}",
            "{turns: 6, turn_end_fraction: 0.2, environments: 300, environment_seconds: 20, failed_fraction: 0.02}",
        ),
        rates=seldom(
            "{instance_tokens_per_second: 4000, train_seconds: 40}",
            "{train_seconds: 40}",
            "{instance_tokens_per_second: 4000 ± 300, train_seconds: 40 ± 3, sync_seconds: 4}",
            "{overhead_seconds: 12 ± 2}",
        ),
        max_staleness=random.choice((None, 0.5, 1, 4)),
        prices=random.choice(("{gpu_hour: 2.5}", "{rollout_gpu_hour: 1.25, trainer_gpu_hour: 2.5 ± 0.5}")),
        rollout_gpu=seldom("a100-80-sxm", "l40s", once_in=6),
        budget=seldom("{trainer_idle_fraction: 1, gpus: 100000}"),
        saved=bool(seldom(True)),
        engine=seldom({"hit_ratio": 0.3}, {"routing": "random"}, {"concurrency": 24}, {"memory_fraction": 0.8}) or {},
        policies=seldom(
            "{late_samples: drop}",
            "{late_samples: wait}",
            "{oversampling: 1.25}",
            "{late_samples: continue, oversampling: 1.5}",
            "{redealing: waiting}",
            once_in=2,
        ),
        framework=seldom("verl", "trl", "nemo-rl", "prime-rl"),
        sync=seldom("{way: rolling}", "{way: drain}", "{way: in-flight}"),
        trouble=seldom("{losses_per_hour: 0.5, lost_together: 2}"),
    )


def file_of(desk: Desk, loop: Loop) -> str:
    """The file that commands are asked about: the loop's scenario, or the plan that `plan --save` makes of it."""
    path = desk.file(loop.text)
    return (desk.saved_plan(path) if loop.saved else None) or path


def main(args: list[str]) -> int:
    """Print all disagreements: about files, or about so many random loops; the exit code is 1 where there are any."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        count = int(args[0]) if args and args[0].isdigit() else 10
        files = (
            args if args and not args[0].isdigit() else [file_of(desk, random_loop(number)) for number in range(count)]
        )
        bad = 0
        for path in files:
            text = Path(path).read_text("utf-8")
            sys.stdout.write(f"\n=== {path}\n{text if text.startswith(HEAD) else text.splitlines()[0]}\n")
            for found in disagreements(desk, path):
                bad += 1
                sys.stdout.write(f"{found}\n".replace(path, "FILE"))
        sys.stdout.write(f"\n{bad} disagreements about {len(files)} loops\n")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
