"""How long and on what `measure` measures; what it runs is said by the quantities of the loop."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.quantities.row import Row, Word

_PATIENCE = Quantity("s", least=1.0, most=86_400.0)
_RANKS = Quantity("count", most=1024, whole=True)

ROWS = (
    Row(
        "measurement_seconds",
        _PATIENCE,
        "Time for each of rollout, train and sync, loading apart; 240 s when not given, 45 s for a quick look.",
        flag="--",
        default=240.0,
        why="time for a steady state at several concurrencies",
    ),
    Row(
        "start_seconds",
        _PATIENCE,
        "Longest time that an engine or a trainer may take to start.",
        flag="--start-timeout",
        default=1800.0,
        why="time to load large weights from a slow disk",
    ),
    Row(
        "device",
        Word(("auto", "cuda", "cpu")),
        "What trainers and weight syncs run on.",
        flag="--",
        default="auto",
        why="GPUs where there are any",
    ),
    Row("sender_ranks", _RANKS, "Ranks that send; half of the GPUs when not given.", flag="--"),
    Row("receiver_ranks", _RANKS, "Ranks that receive; the other half when not given.", flag="--"),
)
