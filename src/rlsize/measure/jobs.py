"""What a worker under another Python is run with: a job in JSON, a command, and its events, which become a result."""

from __future__ import annotations

import json
import subprocess
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.frozen import dataclass
from rlsize.measure.child import WHOLE_LOG, Child, ChildDiedError, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rlsize.facts.measured import Scatter

MeasuredT_co = TypeVar("MeasuredT_co", covariant=True)

PATIENCE_SECONDS = 60.0
TOKENS_SECONDS = 600.0  # for a tokenizer, perhaps fetched, and 64 MB of texts
_NAME_ONE = "name a Python program, as .venv/bin/python"
LIBRARIES = ("torch", "transformers", "vllm")
FEWEST_REPEATS = 5
WIDE = 0.1  # coefficient of variation from which one figure says little
STORE = "read_timeout=15"  # torchrun's first connection to its own store may hang until it times out: 60 s if not told
PER_NODE = ("--nproc-per-node", "--nproc_per_node")
_ASK = (
    "import importlib.util as u, json, sys; "
    "print(json.dumps([name for name in sys.argv[1:] if u.find_spec(name) is not None]))"
)

_TOKENS = (
    "import json, sys; from transformers import AutoTokenizer as A; t = A.from_pretrained(sys.argv[1]); "
    "print(json.dumps([t.encode(x, add_special_tokens=False) for x in json.load(sys.stdin)]))"
)


def scatter_doubts(name: str, found: Scatter | None, what: str, why: str = "") -> Iterator[str]:
    """
    Why a median may not hold, a sentence each.

    Args:
        name: What was measured.
        found: How its repeats scatter; None where that is not known.
        what: What scatters.
        why: What may be behind that.
    """
    if found and found.parts < FEWEST_REPEATS:
        yield f"{name}: {found.parts} repeats, fewer than {FEWEST_REPEATS}; the median may be off."
    if found and found.cv > WIDE:
        yield f"{name}: {what} scatter by {100 * found.cv:.0f} % (coefficient of variation){why}."


def libraries(python: str, flag: str) -> frozenset[str]:
    """
    Which of torch, transformers and vllm a Python has.

    Args:
        python: The program.
        flag: The flag that named it, for messages.

    Raises:
        InputError: It is no Python that runs here.
    """
    asked = _answered(python, flag, [_ASK, *LIBRARIES])
    try:
        return frozenset(json.loads(asked.stdout))
    except ValueError:
        what = f"{python} does not answer as a Python does"
        raise InputError(Fault(what, flag, _NAME_ONE)) from None


def token_ids(python: str, flag: str, model: str, path: str, texts: Sequence[str]) -> list[list[int]]:
    """
    Texts as a model's tokenizer has them, without special tokens.

    Args:
        python: A Python with transformers.
        flag: The flag that named it, for messages.
        model: A folder or a Hugging Face id.
        path: The file that holds the texts, for messages.
        texts: The texts.

    Raises:
        InputError: It has none, or the model has no tokenizer.
    """
    todo = "give prompt_token_ids, or the folder of a model with its tokenizer"
    asked = _answered(python, flag, [_TOKENS, model], json.dumps(texts), TOKENS_SECONDS)
    try:
        found: list[list[int]] = json.loads(asked.stdout)
    except ValueError:
        last = (asked.stderr.strip().splitlines() or ["no answer"])[-1][:200]
        raise InputError(Fault(f"texts cannot be read as tokens of {model}: {last}", path, todo)) from None
    if not all(found):
        raise InputError(Fault(f"a text has no token in the tokenizer of {model}", path, todo))
    return found


def _answered(
    python: str, flag: str, words: Sequence[str], given: str = "", seconds: float = PATIENCE_SECONDS
) -> subprocess.CompletedProcess[str]:
    """
    What the user's own Python says to some code and its arguments, within some time.

    Raises:
        InputError: It cannot be run, or does not end.
    """
    try:
        return subprocess.run(  # noqa: S603 (the user's own Python, asked in words of ours)
            [python, "-c", *words],
            input=given,
            capture_output=True,
            timeout=seconds,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {seconds:.0f} s"
        raise InputError(Fault(f"{python} cannot be run: {reason}", flag, _NAME_ONE)) from None


def launcher(flags: Sequence[str], ranks: int) -> list[str]:
    """
    What torchrun is told before the worker's name.

    Args:
        flags: What the user says for several nodes; empty for one node.
        ranks: Ranks that a node starts, unless the flags say it.

    >>> launcher([], 2)
    ['torch.distributed.run', '--standalone', '--rdzv-conf', 'read_timeout=15', '--nproc-per-node', '2', '-m']
    >>> launcher(["--nnodes", "2"], 8)
    ['torch.distributed.run', '--nnodes', '2', '--nproc-per-node', '8', '-m']
    """
    said = any(flag.split("=")[0] in PER_NODE for flag in flags)
    count = () if said else ("--nproc-per-node", str(ranks))
    return ["torch.distributed.run", *(flags or ("--standalone", "--rdzv-conf", STORE)), *count, "-m"]


def command(python: str, worker: str, job: Mapping[str, Any], folder: Path, through: Sequence[str] = ()) -> list[str]:
    """
    The command that runs a worker on a job, which is written down for it.

    Args:
        python: The Python to run it.
        worker: A module of `workers/`.
        job: What the worker takes.
        folder: Where the job is written.
        through: What starts the worker in turn, as `launcher` gives it.
    """
    path = folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    return [python, "-m", *through, f"rlsize.measure.workers.{worker}", str(path)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult(Generic[MeasuredT_co]):
    """
    What came out of a stage.

    Args:
        measured: The figures.
        versions: Libraries that did the work.
        gpus: Names of the GPUs, one for each rank; empty on a CPU.
        doubts: Why the figures may not hold, in sentences.
        partial: Why it ended early; empty where all was measured.
    """

    measured: MeasuredT_co
    versions: dict[str, str] = field(default_factory=dict)
    gpus: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    partial: str = ""


@dataclass(slots=True)
class WorkerEvents:
    """
    The events of a worker, as they came.

    Args:
        name: What to call the worker in messages.
        repeated: The kind of event that each measurement is told by.
        when_full: What to do where its memory runs out.
    """

    name: str
    repeated: str
    when_full: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)
    others: dict[str, dict[str, Any]] = field(default_factory=dict)
    partial: str = ""

    def take(self, event: dict[str, Any]) -> None:
        """Keep an event; of those that are no measurements the first of each kind, as later faults follow from it."""
        if event["event"] == self.repeated:
            self.results.append(event)
        else:
            self.others.setdefault(event["event"], event)

    @property
    def timed(self) -> list[dict[str, Any]]:
        """The measurements that count: not those of a warm-up."""
        return [one for one in self.results if not one.get("warm_up")]

    def listen(
        self,
        argv: Sequence[str],
        folder: Path,
        silence: float,
        told: Callable[[dict[str, Any]], None],
        at_work: float = 0.0,
    ) -> None:
        """
        Run the worker to its end; an early end after a first result is kept as what makes it partial.

        Args:
            argv: The command.
            folder: Where the workers lie, and its log and its events.
            silence: Most that it may say nothing. [s]
            told: Given each event.
            at_work: How much longer that is once it is ready. [s]

        Raises:
            ChildDiedError: It ended before the first result.
            UnfinishedError: It ended in order, and has none.
            KeyboardInterrupt: It was ended before the first result, by Ctrl-C.
        """
        try:
            with Child(argv, folder, self.name, staged(folder)) as child:
                while (event := child.hear(silence + (at_work if "ready" in self.others else 0.0))) is not None:
                    self._note(event, told)
        except KeyboardInterrupt:
            if not self.timed:
                raise
            self.partial = "" if "done" in self.others else "interrupted"
        except ChildDiedError as error:
            if "done" in self.others:  # it fell over on its way out
                return
            reason = self._reason(error)
            if not self.timed:
                raise reason from None
            self.partial = reason.faults[0].what
        if not self.timed:
            away = "ready" not in self.others  # another node's part: rank 0 tells its own rlsize
            what = "rank 0 is on another node, which has the figures" if away else f"ended without a {self.repeated}"
            raise UnfinishedError(Fault(what, self.name, "look there" if away else WHOLE_LOG))

    def _note(self, event: dict[str, Any], told: Callable[[dict[str, Any]], None]) -> None:
        """Keep an event and pass it on; one rank without memory ends all, as the others wait for it."""
        self.take(event)
        told(event)
        if event["event"] == "out_of_memory":
            raise ChildDiedError(Fault(event["text"], self.name, self.when_full), memory=True)

    def result(self, measured: Any, doubts: Iterable[str]) -> StageResult[Any]:
        """What came out of it, with what the worker said when it was ready."""
        ready = self.others["ready"]
        return StageResult(
            measured=measured,
            versions=ready["versions"],
            gpus=ready["gpus"],
            doubts=list(doubts),
            partial=self.partial,
        )

    def _reason(self, error: ChildDiedError) -> ChildDiedError:
        """Why it died: what the worker said, or of its ranks the first to fail, else what the process left."""
        memory = "out_of_memory" in self.others
        said = self.others.get("out_of_memory" if memory else "failed")
        if said is None or (error.memory and not memory):
            return error
        rank = f"rank {said['rank']} {'ran out of memory' if memory else 'failed'}: " if "rank" in said else ""
        fault = Fault(f"{rank}{said['text']}", self.name, self.when_full if memory else WHOLE_LOG)
        return ChildDiedError(fault, memory=memory)
