"""
The client of one OpenAI-compatible server that runs already: concurrent streaming requests of n samples each.

Runs in a process of its own, so that a fleet's streams do not wait for each other's parsing; on aiohttp, whose parser
in C keeps up with thousands of tokens per second, where httpx does not. The server is not trusted: nothing is followed,
answers are bounded in size and time, and what it says is counted, never executed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlsize.measure.workers.events import say
from rlsize.measure.workers.load import Commands, Group, Phase, Tale

PATIENCE_SECONDS = 10.0  # a server that answers nothing for so long, while it is asked all the time, has gone
LONGEST_SILENCE_SECONDS = 600.0  # of a stream: its request may wait that long for room in the batch
LONGEST_PAUSE_SECONDS = 1.0  # between two attempts while it says that it is busy
LARGEST_PAGE = 32 * 2**20
BUSY = frozenset({429, 503})
IN_FLIGHT = ("vllm:num_requests_running", "vllm:num_requests_waiting")
LAST = Group("settle", prompt_tokens=1, samples=1, response_tokens=1)
NOTHING = {"phase": "", "groups": [], "refill": [], "concurrency": 1, "page_seconds": 1.0}
LARGEST_CHUNK = 16 * 2**10  # bytes of a stream for each token asked for; a stream with more is none


class ServerGoneError(Exception):
    """The server cannot be worked with; the message says what it did."""


class Stream:
    """
    The server-sent events of one streaming request, counted without parsing each token's.

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
        self._first: float | None = None  # when the first token came
        self.made: list[list[int]] = [[] for _ in range(group.samples)] if group.then else []

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
        if self.made and line.startswith(b"{"):
            with suppress(ValueError, LookupError, TypeError, AttributeError):
                for choice in json.loads(line)["choices"]:
                    self.made[choice["index"]] += map(int, choice.get("token_ids") or ())
        if b'"finish_reason":"' in line or b'"finish_reason": "' in line:
            self._ended += 1
            self._count()
            self.tale.finish(self.group, 1, self.group.response_tokens, self._first)
        elif b'"completion_tokens":' in line:
            self._tokens = usage(line)
        elif b'"text"' in line or b'"delta"' in line:  # nothing else is a token
            self._count()

    def _count(self) -> None:
        if not self._counted:
            self.tale.opened = (self.tale.opened or 0) + self.group.samples
            self._first = time.perf_counter()
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
        if any(len(one) != self.group.response_tokens for one in self.made):
            raise ServerGoneError(
                "does not tell the ids of its tokens (return_token_ids), which later turns begin with"
            )
        self.tale.streamed += asked - self._counted  # a server may send several tokens in one event


def usage(line: bytes) -> int | None:
    """Response tokens as the server counted them; None where the line does not say."""
    try:
        return int(json.loads(line)["usage"]["completion_tokens"])
    except (ValueError, LookupError, TypeError):
        return None


class Server:
    """
    One server.

    Args:
        job: `base` (its address), `login`, `temperature`, `vocabulary`, `timeout_seconds`, `authority`,
            `insecure`.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        import aiohttp

        self.job = job
        self.base: str = job["base"]
        token = os.environ.get("RLSIZE_BEARER_TOKEN", "")
        headers = {"User-Agent": "rlsize", "Accept-Encoding": "identity"}
        headers |= {"Authorization": f"Bearer {token}"} if token and not job["login"] else {}
        self.client = aiohttp.ClientSession(
            headers=headers,
            auth=aiohttp.BasicAuth(*job["login"]) if job["login"] else None,
            connector=aiohttp.TCPConnector(limit=0, ssl=trust(job)),
            trust_env=False,
        )
        patience = job["timeout_seconds"]
        self.brief = aiohttp.ClientTimeout(total=patience)
        self.long = aiohttp.ClientTimeout(total=None, sock_connect=patience, sock_read=LONGEST_SILENCE_SECONDS)
        self.model = ""
        self.phase = ""
        self.answered = time.perf_counter()
        self.refused = 0
        self.broken = 0
        self.last_fault = ""

    async def get(self, path: str) -> bytes:
        """
        A small page.

        Raises:
            ServerGoneError: It cannot be had.
        """
        import aiohttp

        url = f"{self.base}{path}"
        try:
            async with self.client.get(url, allow_redirects=False, timeout=self.brief) as answer:
                if answer.status != 200:  # noqa: PLR2004 (HTTP's OK)
                    raise ServerGoneError(f"answers {answer.status} to {path}")
                content = bytearray()
                async for chunk in answer.content.iter_any():
                    content += chunk
                    if len(content) > LARGEST_PAGE:
                        raise ServerGoneError(f"sends more than {LARGEST_PAGE >> 20} MiB as {path}")
                return bytes(content)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ServerGoneError(f"cannot be read: {told(error)}") from None

    async def page(self) -> str:
        """Its metrics page; empty where it shows none, as counting goes on without."""
        try:
            return (await self.get("/metrics")).decode("utf-8", "replace")
        except ServerGoneError:
            return ""

    async def facts(self) -> dict[str, Any]:
        """What it serves."""
        content = await self.get("/v1/models")
        try:
            card = json.loads(content)["data"][0]
            self.model, longest = str(card["id"]), card.get("max_model_len")
        except (ValueError, LookupError, TypeError, AttributeError):
            raise ServerGoneError("does not list its models as an OpenAI-compatible server does") from None
        versions = {}
        with suppress(ServerGoneError, ValueError, LookupError, TypeError):
            versions["vllm"] = str(json.loads(await self.get("/version"))["version"])[:60]
        context = longest if isinstance(longest, int) else None
        return {"model": self.model, "max_model_len": context, "versions": versions}

    def request(self, group: Group) -> dict[str, Any]:
        """A group as a request; played prompts find none of an earlier phase in the prefix cache."""
        salt = f"{self.phase}-{group.cache_salt}".replace("/", "-")  # vLLM takes no slash
        played: dict[str, Any] = {"cache_salt": salt} if group.parts else {}
        played |= {"return_token_ids": True} if group.then else {}
        return played | {
            "model": self.model,
            "prompt": group.token_ids(self.job["vocabulary"]),
            "n": group.samples,
            "max_tokens": group.response_tokens,
            "ignore_eos": True,
            "temperature": self.job["temperature"],
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    async def generate(self, group: Group, tale: Tale) -> list[list[int]]:
        """
        Ask for a group and read its stream to the end; again while the server says that it is busy.

        Raises:
            ServerGoneError: It answered nothing for too long, or refuses such requests for good.
        """
        import aiohttp

        pause = 0.05
        while True:
            try:
                if (stream := await self._attempt(group, tale)) is not None:
                    return stream.made
                self.refused += 1
                self.last_fault = "answers that it is busy or paused"
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                self.broken += 1
                self.last_fault = told(error)
            if time.perf_counter() - self.answered > PATIENCE_SECONDS:
                raise ServerGoneError(f"has answered nothing for {PATIENCE_SECONDS:.0f} s: {self.last_fault}")
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE_SECONDS, 2.0 * pause)

    async def _attempt(self, group: Group, tale: Tale) -> Stream | None:
        """One request; None where the server did not take it."""
        url = f"{self.base}/v1/completions"
        asked = self.client.post(url, json=self.request(group), allow_redirects=False, timeout=self.long)
        async with asked as answer:
            if answer.status in BUSY:
                return None
            if answer.status != 200:  # noqa: PLR2004 (HTTP's OK)
                body = (await answer.content.read(300)).decode("utf-8", "replace")
                raise ServerGoneError(f"answers {answer.status} to a request: {' '.join(body.split())}")
            stream = Stream(group, tale)
            async for chunk in answer.content.iter_any():
                self.answered = time.perf_counter()
                stream.take(chunk)
            stream.close()
        return stream


def told(error: Exception) -> str:
    """A fault in a line; it may hold anything that a server sent."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:160]


def trust(job: dict[str, Any]) -> Any:
    """Whom to trust: the system's certificates, those of a file, or anybody."""
    import ssl

    if job["insecure"]:
        return False
    return ssl.create_default_context(cafile=job["authority"])


async def run(server: Server, phase: Phase, commands: Commands) -> None:
    """
    Generate until all is done, or until told to halt.

    Raises:
        ServerGoneError: The server cannot be worked with any more.
    """
    tale = Tale(phase)
    tale.opened, server.phase = 0, phase.name
    tale.begin(await server.page())
    server.answered = time.perf_counter()
    running: dict[asyncio.Task[list[list[int]]], Group] = {}
    pages = asyncio.create_task(turn_pages(server, tale))
    try:
        while not phase.over(commands):
            for group in phase.admit():
                running[asyncio.create_task(server.generate(group, tale))] = group
            if not running:
                break
            done, _ = await asyncio.wait(running, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                group = running.pop(task)
                for follow in phase.ended(group, task.result()):
                    running[asyncio.create_task(server.generate(follow, tale))] = follow
        tale.tell(await server.page())  # while all is still in flight: what follows is draining
    finally:
        pages.cancel()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, pages, return_exceptions=True)
    tale.end(await server.page(), refused=server.refused, broken=server.broken)
    await settled(server)


async def turn_pages(server: Server, tale: Tale) -> None:
    """Tell the counters at even moments."""
    while True:
        await asyncio.sleep(tale.phase.page_seconds)
        tale.tell(await server.page())


async def settled(server: Server) -> None:
    """
    Wait until the server has thrown out what was broken off, so that the next phase finds it empty.

    A last small request follows: engines hand their counts on with the next step's outputs, and those of samples that
    were thrown out last would arrive in the middle of what comes next.
    """
    until = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < until:
        lines = (await server.page()).splitlines()
        if all(line.rstrip().endswith((" 0.0", " 0")) for line in lines if line.startswith(IN_FLIGHT)):
            break
        await asyncio.sleep(0.1)
    await server.generate(LAST, Tale(Phase(NOTHING)))


async def serve(job: dict[str, Any], commands: Commands) -> None:
    """
    Do what is asked until there is nothing more to do.

    Raises:
        ServerGoneError: The server cannot be worked with.
    """
    server = Server(job)
    async with server.client:
        say("ready", page=await server.page(), **await server.facts())
        while (command := await asyncio.to_thread(commands.wait))["do"] != "quit":
            if command["do"] == "load":
                await run(server, Phase(command), commands)


def main(path: str) -> int:
    """Work with the server; where it goes away, say why."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        asyncio.run(serve(job, Commands()))
    except ServerGoneError as error:
        say("gone", why=str(error))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
