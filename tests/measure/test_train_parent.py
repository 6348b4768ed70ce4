"""The parent of the trainer, with a script in the trainer's place: steps down, keeps what there was, says why."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.errors import InputError, UnfinishedError
from rlsize.measure.child import ChildDiedError
from rlsize.measure.train import TrainJob, measure_train

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAYED = """\
#!{python}
import json, os, signal, sys, time

job = json.load(open(sys.argv[-1]))


def say(event, **fields):
    with open(os.environ["RLSIZE_EVENTS"], "a") as events:
        events.write(json.dumps({{"event": event, **fields}}) + "\\n")


def ready():
    say("ready", versions={{}}, gpus=[], world=1, params=9, attention="sdpa")
    say("plan", micro_batches=1, micro_batches_timed=1, tokens_timed=100)


def step(warm_up=False):
    say("step", warm_up=warm_up, loss=0.1, seconds=2.0, phases={{"logprob": 1.0, "forward": 1.0}})
    say("progress", step=0 if warm_up else 1, of=3, seconds=1.0)


"""
TELL_ARGV = "open(sys.argv[-1] + '.argv', 'w').write(' '.join(sys.argv))"


class Told:
    """What the parent said it was doing."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __call__(self, words: str, share: float) -> None:
        """Remember it; a share is one."""
        assert 0.0 <= share <= 1.0
        self.words.append(words)


@pytest.fixture
def player(tmp_path: Path) -> Callable[[str], str]:
    """A stand-in for Python that plays a trainer."""

    def played(body: str) -> str:
        script = tmp_path / "python"
        script.write_text(PLAYED.format(python=sys.executable) + textwrap.dedent(body), encoding="utf-8")
        script.chmod(0o755)
        return str(script)

    return played


def job(**changed: Any) -> TrainJob:
    """Two samples, 40 and 60 tokens long."""
    fields = {"model": "m", "lengths": ((10, 30), (10, 50)), "group_size": 2, "micro_batch_tokens": 200}
    return TrainJob(**{"start_seconds": 120.0, **fields, **changed})


def test_what_the_trainer_is_told(player: Callable[[str], str], tmp_path: Path) -> None:
    """The job arrives whole, torchrun gets the processes, and nothing is doubted that need not be."""
    python = player(f"ready(); step(True); step(); step(); step(); say('done'); {TELL_ARGV}")
    found = measure_train(job(processes=3, seed=7), python, tmp_path, seconds=5.0, say=Told())
    assert found.partial == ""
    assert found.measured.steps_timed == 3
    told = json.loads((tmp_path / "train-200" / "job.json").read_text(encoding="utf-8"))
    assert {"seed": 7, "seconds": 5.0, "micro_batch_tokens": 200, "recompute": "none"}.items() <= told.items()
    argv = (tmp_path / "train-200" / "job.json.argv").read_text(encoding="utf-8")
    ranks = "--standalone --rdzv-conf read_timeout=15 --nproc-per-node 3"
    assert f"-m torch.distributed.run {ranks} -m rlsize.measure.workers.train" in argv


def test_flags_of_several_nodes_replace_standalone(player: Callable[[str], str], tmp_path: Path) -> None:
    """Rendezvous is torchrun's own."""
    python = player(f"ready(); step(); say('done'); {TELL_ARGV}")
    flags = ("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "head:29500")
    measure_train(job(torchrun=flags), python, tmp_path, seconds=5.0, say=Told())
    argv = (tmp_path / "train-200" / "job.json.argv").read_text(encoding="utf-8")
    assert f"torch.distributed.run {' '.join(flags)} --nproc-per-node 1" in argv


def test_out_of_memory_steps_down(player: Callable[[str], str], tmp_path: Path) -> None:
    """Halved until it fits; the step is measured with what did, and a doubt says so."""
    python = player(
        """
        ready()
        if job["micro_batch_tokens"] > 100:
            say("out_of_memory", rank=0, text="CUDA out of memory")
            sys.exit(70)
        step(); step(); step(); say("done")
        """
    )
    told = Told()
    found = measure_train(job(micro_batch_tokens=400), python, tmp_path, seconds=5.0, say=told)
    assert found.measured.micro_batch_tokens == 100
    doubts = [doubt for doubt in found.doubts if "memory ran out" in doubt]
    assert [words for words in told.words if "out of memory" in words] != []
    assert "400 tokens, so 200" in doubts[0]
    assert "200 tokens, so 100" in doubts[1]


@pytest.mark.parametrize(
    "body",
    [
        "sys.stderr.write('RuntimeError: DefaultCPUAllocator: can\\'t allocate memory\\n'); sys.exit(1)",
        "sys.stderr.write('traceback : Signal 9 (SIGKILL) received by PID 12\\n'); sys.exit(1)",
        "os.kill(os.getpid(), signal.SIGKILL)",
    ],
    ids=["the allocator gave up", "the kernel took a rank", "the kernel took torchrun"],
)
def test_other_ways_to_run_out(player: Callable[[str], str], tmp_path: Path, body: str) -> None:
    """Some deaths for want of memory are only in the log; the smallest micro-batch holds the longest sample."""
    python = player(f"ready()\nif job['micro_batch_tokens'] > 60:\n    {body}\nstep(); say('done')")
    found = measure_train(job(micro_batch_tokens=100), python, tmp_path, seconds=5.0, say=Told())
    assert found.measured.micro_batch_tokens == 60


def test_one_sample_too_much(player: Callable[[str], str], tmp_path: Path) -> None:
    """With nothing left to halve it says what else to do."""
    python = player("ready(); say('out_of_memory', rank=0, text='full'); sys.exit(70)")
    with pytest.raises(UnfinishedError, match=r"(?s)one sample of 60 tokens.*recompute"):
        measure_train(job(), python, tmp_path, seconds=5.0, say=Told())


def test_a_death_keeps_what_was_timed(player: Callable[[str], str], tmp_path: Path) -> None:
    """Two steps, then a rank fails: the figures are there, marked, with the cause and not what torchrun says of it."""
    python = player("ready(); step(True); step(); step(); say('failed', rank=1, text='NCCL error'); sys.exit(1)")
    found = measure_train(job(), python, tmp_path, seconds=5.0, say=Told())
    assert found.partial == "rank 1 failed: NCCL error"
    assert found.measured.steps_timed == 2
    assert found.measured.peak_memory_bytes is None


def test_a_kill_after_a_step_keeps_it(player: Callable[[str], str], tmp_path: Path) -> None:
    """Memory that was enough for a step was enough: whoever killed the rank, the step stands."""
    body = "sys.stderr.write('traceback : Signal 9 (SIGKILL) received by PID 12\\n'); sys.exit(1)"
    found = measure_train(job(), player(f"ready(); step(); {body}"), tmp_path, seconds=5.0, say=Told())
    assert "was killed" in found.partial
    assert found.measured.micro_batch_tokens == 200


def test_a_death_before_the_first_step(player: Callable[[str], str], tmp_path: Path) -> None:
    """There is nothing to keep, so it is an error that says the cause."""
    python = player("say('failed', rank=0, text='OSError: no config.json'); sys.exit(1)")
    with pytest.raises(ChildDiedError, match=r"no config\.json"):
        measure_train(job(), python, tmp_path, seconds=5.0, say=Told())


def test_an_end_without_a_step(player: Callable[[str], str], tmp_path: Path) -> None:
    """A trainer that ends in order and has timed nothing has not measured."""
    with pytest.raises(UnfinishedError, match="without a step"):
        measure_train(job(), player("ready()"), tmp_path, seconds=5.0, say=Told())


def test_silence_is_not_waited_for(player: Callable[[str], str], tmp_path: Path) -> None:
    """A trainer that does not start in its time is ended."""
    with pytest.raises(ChildDiedError, match="said nothing"):
        measure_train(job(start_seconds=0.5), player("time.sleep(60)"), tmp_path, seconds=5.0, say=Told())


def test_a_fall_on_the_way_out_harms_nothing(player: Callable[[str], str], tmp_path: Path) -> None:
    """All was said when it died."""
    found = measure_train(job(), player("ready(); step(); say('done'); sys.exit(1)"), tmp_path, seconds=5.0, say=Told())
    assert found.partial == ""


def test_an_interrupt_keeps_what_was_timed(player: Callable[[str], str], tmp_path: Path) -> None:
    """Ctrl-C after a step: its figures, marked."""
    python = player("ready(); step(); time.sleep(60)")
    found = measure_train(job(), python, tmp_path, seconds=5.0, say=interrupting("train step 1"))
    assert found.partial == "interrupted"
    assert found.measured.steps_timed == 1


def test_an_interrupt_before_the_first_step(player: Callable[[str], str], tmp_path: Path) -> None:
    """Nothing to keep: the interrupt goes on up."""
    with pytest.raises(KeyboardInterrupt):
        measure_train(job(), player("ready(); time.sleep(60)"), tmp_path, seconds=5.0, say=interrupting("warms up"))


def interrupting(words: str) -> Callable[[str, float], None]:
    """Ctrl-C once something is said."""

    def say(said: str, _: float) -> None:
        if words in said:
            raise KeyboardInterrupt

    return say


def test_a_sample_is_not_split(tmp_path: Path) -> None:
    """Micro-batches that cannot hold the longest sample are refused before anything starts."""
    with pytest.raises(InputError, match="cannot hold a sample of 60"):
        measure_train(job(micro_batch_tokens=59), "python", tmp_path, seconds=5.0, say=Told())


def test_no_such_python(tmp_path: Path) -> None:
    """What cannot be started says so."""
    with pytest.raises(UnfinishedError, match="cannot be started"):
        measure_train(job(), str(tmp_path / "nothing"), tmp_path, seconds=5.0, say=Told())
