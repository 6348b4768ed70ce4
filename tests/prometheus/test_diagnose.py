"""`rlsize diagnose --prometheus`: engines and trainer over time, under the names that rules record."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest
from tests.commands.engine_fleet import Engine, served
from tests.prometheus.test_rules import rules_of

from rlsize.facts.published import BUSY, LOOP, RECORDED, SIGNALS, STEP, STEPS, SYNC, TRAINED, WAIT
from rlsize.shell import live_engines

if TYPE_CHECKING:
    from tests.prometheus.conftest import Starter

END = 1_772_366_400.0
EVERY, STEP_SECONDS, STEPS_RUN = 5, 60, 12
WAITED, SYNCED, TRAINED_TOKENS = 24.0, 3.0, 1_200_000.0
FULL = 64.0


def history(*, tail: bool, counted: bool = True) -> str:
    """
    A loop of steps of a minute, scraped every 5 s: the trainer waits 24 s of each, syncs 3 s and works the rest.

    With a tail, two engines run dry over the wait; without it they are full until its end.
    """
    lines: dict[str, list[str]] = {}

    def add(name: str, labels: str, value: float, at: float) -> None:
        lines.setdefault(name, []).append(f"{name}{{{labels}}} {value:.6g} {at:.3f}")

    for look in range(STEP_SECONDS * STEPS_RUN // EVERY):
        at = END - STEP_SECONDS * STEPS_RUN + EVERY * (look + 1) - 0.5
        done, place = divmod(EVERY * look + 2, STEP_SECONDS)  # so a step is seen to end 2 s late
        own = {STEP: STEP_SECONDS, WAIT: WAITED, SYNC: SYNCED, BUSY: STEP_SECONDS - WAITED - SYNCED, STEPS: 1.0}
        if counted:
            add(LOOP, 'job="trainer",instance="t:9477",mode="async"', 1.0, at)
        for name, each in {**own, TRAINED: TRAINED_TOKENS}.items() if counted else ():
            add(name, 'job="trainer",instance="t:9477"', each * done, at)
        shares = {"idle": WAITED / STEP_SECONDS, "sync": SYNCED / STEP_SECONDS, "queue": 40.0}
        for signal, share in shares.items() if not counted else ():
            add(SIGNALS[signal], 'loop="a"', share, at)
        running = FULL * (1.0 - min(place, WAITED) / WAITED) ** 3 if place <= WAITED and tail else FULL
        for engine in ("e0", "e1"):
            labels = f'job="rollout",instance="{engine}:8000",loop="a",model_name="policy"'
            add(RECORDED["generation_tokens"], labels, 10_000.0 * EVERY * look, at)
            add(RECORDED["requests_running"], labels, running, at)
            add(RECORDED["requests_waiting"], labels, 0.0, at)
    return "\n".join([*(line for rows in lines.values() for line in rows), "# EOF"]) + "\n"


@pytest.mark.parametrize(("tail", "counted"), [(True, True), (False, True), (True, False)])
def test_running_requests_tell_a_tail_from_too_few_engines(
    prometheus_server: Starter,
    rlsize: Any,
    monkeypatch: pytest.MonkeyPatch,
    *,
    tail: bool,
    counted: bool,
) -> None:
    """
    The command of an alert, as it stands, reads the trainer beside the engines and parts what the trainer waits for.

    Where an exporter is known by the recorded shares alone, the bounds are those of waits that lie anywhere.
    """
    monkeypatch.setenv("RLSIZE_BEARER_TOKEN", "")
    server = prometheus_server({}, history=history(tail=tail, counted=counted))
    step = {"step_seconds": 60.0, "batch_tokens": TRAINED_TOKENS, "train_seconds": STEP_SECONDS - WAITED - SYNCED}
    command = rules_of(planned=step).command.replace("$PROMETHEUS", server.url)
    ran = rlsize(*shlex.split(command)[1:], "--at", str(END), "--json")
    assert ran.code == 0, ran.stderr
    found = ran.results
    assert found["trainer_idle_fraction"] == pytest.approx(0.4)
    assert found["sync_pause_fraction"] == pytest.approx(0.05)
    assert found["tail_wait_fraction"] + found["capacity_wait_fraction"] == pytest.approx(0.4)
    part = found["tail_wait_fraction"]
    low, high = ran.document["explain"]["tail_wait_fraction"].get("band", (part, part))
    assert 0.0 <= low <= part <= high <= 0.4 + 1e-9
    if not counted:
        assert low < 0.05
        assert high > 0.1
        return
    assert found["step_seconds"] == pytest.approx(STEP_SECONDS)
    assert found["consumption_tokens_per_second"] == pytest.approx(TRAINED_TOKENS / (STEP_SECONDS - WAITED - SYNCED))
    truth = 0.3 if tail else 0.0  # of a fleet that empties as a cube, three quarters of the wait
    assert part == pytest.approx(truth, abs=0.06)
    assert low - 1e-9 <= truth <= high + 1e-9
    assert ("Shorten the tail" in ran.document["headline"]) == tail


def test_the_trainer_of_a_prometheus_is_followed_beside_engines(
    prometheus_server: Starter, rlsize: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps are the server's, and what the engines do is on their own pages."""
    monkeypatch.setenv("RLSIZE_BEARER_TOKEN", "")
    server = prometheus_server({}, history=history(tail=True))
    with served() as fleet:
        monkeypatch.setattr(live_engines, "TIME", live_engines.Time(lambda: fleet.now, fleet.sleep))
        fleet.engines = [Engine(rate=1234.0)]
        asked = (*fleet.urls(), "--prometheus", server.url, "--window", "12m", "--at", str(END))
        ran = rlsize("watch", *asked, "--once")
    assert ran.code == 0, ran.stderr
    assert ran.stdout.startswith(f"step {STEPS_RUN - 1}: starving trainer; step 60 s, trainer idle 40.0 %")
    assert "an engine 1,234 tok/s, running 64, waiting 5" in ran.stdout
    assert rlsize("watch", *asked, "--trainer-selector", "job=", "--once").code == 2


def test_a_prometheus_alone_is_followed(
    prometheus_server: Starter, rlsize: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`watch` says of its steps, under their own numbers, what `diagnose` says; one without a trainer is told of."""
    monkeypatch.setenv("RLSIZE_BEARER_TOKEN", "")
    server = prometheus_server({}, history=history(tail=True))
    asked = ("--prometheus", server.url, "--selector", 'job="rollout"', "--window", "12m", "--at", str(END))
    said = rlsize("diagnose", *asked, "--json").document
    for args in (("--once",), ("--fail-on", "starving")):
        ran = rlsize("watch", *asked, *args)
        assert ran.code == (args[0] == "--fail-on"), ran.stderr
        first, second = ran.stdout.splitlines()
        assert first.startswith(f"step {STEPS_RUN - 1}: starving trainer; step 60 s, trainer idle 40.0 %")
        assert second.strip() == said["headline"]
    nobody = rlsize("watch", *asked, "--trainer-selector", 'job="none"', "--once")
    assert (nobody.code, nobody.stdout) == (3, "")
    assert "has no steps of a trainer" in nobody.stderr
