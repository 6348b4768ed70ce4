"""The server-sent events of one streaming request, counted without parsing each token's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.measure.workers.load import Group, Tale

LARGEST_CHUNK = 16 * 2**10  # bytes of a stream for each token asked for; a stream with more is none


class ServerGoneError(Exception):
    """The server cannot be worked with; the message says what it did."""


class Stream:
    """
    One stream.

    Args:
        group: What was asked for.
        tale: Told of each sample that ends.
    """

    def __init__(self, group: Group, tale: Tale) -> None:
        self.group, self.tale = group, tale
        self._rest = b""
        self._read = 0
        self._ended = 0
        self._counted = 0
        self._tokens: int | None = None

    def take(self, chunk: bytes) -> None:
        """
        Read on.

        Raises:
            ServerGoneError: It is no stream of tokens.
        """
        self._read += len(chunk)
        if self._read > LARGEST_CHUNK * (1 + self.group.samples * self.group.response_tokens):
            raise ServerGoneError("streams far more than was asked for")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._line(line[5:].strip())

    def _line(self, line: bytes) -> None:
        if b'"error"' in line[:40]:
            raise ServerGoneError(f"breaks a stream off: {line[:200].decode('utf-8', 'replace')}")
        if b'"finish_reason":"' in line or b'"finish_reason": "' in line:
            self._ended += 1
            self._count()
            self.tale.finish(1, self.group.response_tokens)
        elif b'"completion_tokens":' in line:
            self._tokens = usage(line)
        elif line != b"[DONE]":
            self._count()

    def _count(self) -> None:
        self._counted += 1
        self.tale.streamed += 1

    def close(self) -> None:
        """
        The stream has ended.

        Raises:
            ServerGoneError: With fewer samples or tokens than were asked for.
        """
        asked = self.group.samples * self.group.response_tokens
        if self._ended != self.group.samples:
            raise ServerGoneError(f"ended a stream after {self._ended} of {self.group.samples} samples")
        if self._tokens is not None and self._tokens != asked:
            raise ServerGoneError(
                f"generated {self._tokens} tokens where {asked} were asked for: does it take ignore_eos?"
            )
        self.tale.streamed += asked - self._counted  # a server may send several tokens in one event


def usage(line: bytes) -> int | None:
    """Response tokens as the server counted them; None where the line does not say."""
    try:
        return int(json.loads(line)["usage"]["completion_tokens"])
    except (ValueError, LookupError, TypeError):
        return None
