"""TensorBoard's event files: every way to write a scalar, damage, restarts, and folders."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.readers.logs.forms.tensorboard import frames, masked_crc, scalars
from rlsize.readers.logs.reading import read_log
from rlsize.readers.logs.wire import FrameError

STEP_KEYS = ("timing_s/step", "timing_s/gen", "timing_s/update_actor", "perf/total_num_tokens")


def varint(value: int) -> bytes:
    """A number of variable length."""
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def field(number: int, kind: int, value: bytes) -> bytes:
    """A field of a message; of kind 2 with its length."""
    return varint(number << 3 | kind) + (varint(len(value)) if kind == 2 else b"") + value


def frame(data: bytes) -> bytes:
    """A frame with its checksums."""
    header = struct.pack("<Q", len(data))
    return header + struct.pack("<I", masked_crc(header)) + data + struct.pack("<I", masked_crc(data))


def simple(tag: str, value: float) -> bytes:
    """A summary's entry as SummaryWriter writes it."""
    return field(1, 2, field(1, 2, tag.encode()) + field(2, 5, struct.pack("<f", value)))


def event(seconds: float, step: int, *entries: bytes) -> bytes:
    """A frame with an event."""
    head = field(1, 1, struct.pack("<d", seconds)) + field(2, 0, varint(step))
    return frame(head + field(5, 2, b"".join(entries)))


def step_events(start: float, step: int, seconds: float = 60.0, keys: int = 4) -> bytes:
    """A step as verl logs it, one event for each key."""
    values = (seconds, 20.0, 30.0, 51200.0)
    found = [
        event(start + at, step, simple(tag, value))
        for at, (tag, value) in enumerate(zip(STEP_KEYS, values, strict=True))
    ]
    return b"".join(found[:keys])


VERSION = frame(field(1, 1, struct.pack("<d", 1.0)) + field(3, 2, b"brain.Event:2"))


@pytest.mark.parametrize(
    "tensor",
    [
        field(1, 0, varint(1)) + field(4, 2, struct.pack("<f", 2.5)),
        field(1, 0, varint(1)) + field(2, 2, b"") + field(5, 2, struct.pack("<f", 2.5)),
        field(1, 0, varint(1)) + field(5, 5, struct.pack("<f", 2.5)),
        field(1, 0, varint(2)) + field(4, 2, struct.pack("<d", 2.5)),
        field(1, 0, varint(2)) + field(6, 2, struct.pack("<d", 2.5)),
    ],
)
def test_a_scalar_tensor_is_a_scalar(tensor: bytes) -> None:
    """TensorFlow 2 writes scalars as tensors, in several layouts."""
    entry = field(1, 2, field(1, 2, b"a") + field(8, 2, tensor))
    found = scalars(field(2, 0, varint(7)) + field(5, 2, entry))
    assert found is not None
    assert (found.step, found.values) == (7, {"a": 2.5})


def test_whole_numbers_count_and_vectors_do_not() -> None:
    """An int64 scalar is a number, two floats are none, nor is a text."""
    whole = field(1, 0, varint(9)) + field(10, 2, varint(2**64 - 3))
    two = field(1, 0, varint(1)) + field(4, 2, struct.pack("<ff", 1.0, 2.0))
    text = field(1, 0, varint(7)) + field(8, 2, b"words")
    entries = [
        field(1, 2, field(1, 2, name) + field(8, 2, tensor))
        for name, tensor in ((b"w", whole), (b"v", two), (b"t", text))
    ]
    found = scalars(field(5, 2, b"".join(entries)))
    assert found is not None
    assert found.values == {"w": -3.0}


def test_a_damaged_event_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    """A checksum that does not match leaves its event out; a damaged length ends the file."""
    good = VERSION + b"".join(step_events(10.0 * step, step) for step in (1, 2, 3, 4))
    event_size = len(step_events(10.0, 1, keys=1))
    at = len(VERSION) + 2 * len(step_events(10.0, 1))
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(good[: at + 30] + b"\xff" + good[at + 31 :])
    log = read_log(str(file))
    assert [step.step for step in log.steps] == [1, 2, 3, 4]
    assert log.steps[2].step_seconds is None
    assert [(skipped.count, skipped.first) for skipped in log.skipped] == [(1, f"byte {at:,}")]
    file.write_bytes(good[: at + event_size] + b"\xff" + good[at + event_size + 1 :])
    assert [step.step for step in read_log(str(file)).steps] == [1, 2]


def test_a_step_alone_cannot_be_told_from_one_being_written(tmp_path: Path) -> None:
    """One step, whole or not, is refused; with a second one, the whole ones are used."""
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(VERSION + step_events(10.0, 1))
    with pytest.raises(InputError, match="the last step may not be written out yet"):
        read_log(str(file))
    file.write_bytes(VERSION + step_events(10.0, 1) + step_events(20.0, 2, keys=2))
    assert [step.step for step in read_log(str(file)).steps] == [1]


def test_a_folder_is_read_together_with_its_restarts(tmp_path: Path) -> None:
    """Writers of one run share steps; a run that went back has its steps twice, but not the one that it died in."""
    folder = tmp_path / "tb"
    folder.mkdir()
    first = b"".join(step_events(10.0 * step, step) for step in (1, 2, 3)) + step_events(40.0, 4, keys=2)
    again = b"".join(step_events(100.0 + 10.0 * step, step, seconds=70.0) for step in (3, 4, 5))
    other = b"".join(event(10.0 * step + 5, step, simple("perf/mfu/actor", 0.25)) for step in (1, 2, 3))
    (folder / "events.out.tfevents.2").write_bytes(VERSION + again)
    (folder / "events.out.tfevents.1").write_bytes(VERSION + first)
    (folder / "events.out.tfevents.3").write_bytes(VERSION + other)
    log = read_log(str(folder), format="tensorboard")
    assert [(step.step, step.step_seconds) for step in log.steps] == [
        (1, 60.0), (2, 60.0), (3, 60.0), (3, 70.0), (4, 70.0), (5, 70.0),
    ]  # fmt: skip
    assert [step.mfu for step in log.steps][:3] == [0.25] * 3
    assert [skipped.why for skipped in log.skipped] == ["the last step may not be written out yet"]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_none(data: bytes) -> None:
    """Messages of any content end in scalars, nothing, or a ValueError."""
    for content in (
        data,
        field(5, 2, data),
        field(5, 2, field(1, 2, data)),
        field(5, 2, field(1, 2, field(8, 2, data))),
    ):
        try:
            found = scalars(content)
        except ValueError:
            continue
        assert found is None or all(isinstance(value, float) for value in found.values.values())


def test_a_large_frame_is_passed_over() -> None:
    """An image or a graph is not looked into, and what follows it is read."""
    large = frame(b"\x00" * 3)[:0] + struct.pack("<Q", 3_000_000)
    large += struct.pack("<I", masked_crc(large)) + bytes(3_000_004)
    content = large + event(1.0, 2, simple("a", 1.0))
    found = list(frames(iter([content[:100], content[100:]])))
    assert [data is not None and len(data) > 0 for _, data in found] == [False, True]
    with pytest.raises(FrameError):
        list(frames(iter([large[:-1]])))
