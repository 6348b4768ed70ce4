"""
Pages over HTTP, read as if nobody could be trusted: bounded in time and size, no redirects, no secrets in any message.

All pages of a round are read together on one event loop, because only a task can be cancelled: a server that drips one
byte a second defeats a thread's time-outs. Proxies of the environment are not used (engines stand on the same network,
and a proxy would see the token); the certificates are the system's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.readers.http_targets import LOGIN_VARIABLE, TOKEN_VARIABLE, masked, without

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    import httpx

    from rlsize.readers.http_targets import Target

OK = 200
TOGETHER = 32  # pages in flight at a time


@dataclass(frozen=True, slots=True)
class Access:
    """
    How pages are asked for.

    Args:
        token: Bearer token; sent to the targets, never printed.
        login: User and password for targets whose URL has none; sent instead of a token, never printed.
        authority: File of certificates to trust instead of the system's.
        insecure: Whether to skip the check of certificates.
        seconds: Most that one page may take, from the first packet to the last. [s]
        largest: Most bytes of a page. [B]
    """

    token: str = field(default="", repr=False)
    login: tuple[str, str] | None = field(default=None, repr=False)
    authority: str | None = None
    insecure: bool = False
    seconds: float = 10.0
    largest: int = 32 * 2**20

    def login_of(self, page: Target) -> tuple[str, str] | None:
        """The login for a page: its URL's own, else the one for all."""
        return page.login or self.login

    def secrets(self, page: Target) -> tuple[str, ...]:
        """What no message may show: token, password, and both parts of a login as they are sent."""
        from base64 import b64encode

        login = self.login_of(page)
        if login is None:
            return (self.token,)
        return (self.token, b64encode(":".join(login).encode()).decode(), ":".join(login), login[1])


@dataclass(frozen=True, slots=True)
class Page:
    """
    A page as it was served.

    Args:
        target: Where it came from.
        seconds: When the answer began, on the caller's clock; the server had counted by then.
        content: Its bytes.
        status: HTTP's status.
    """

    target: Target
    seconds: float
    content: bytes
    status: int = OK


def fetch(
    pages: Sequence[Target], access: Access, clock: Callable[[], float], told: frozenset[int] = frozenset()
) -> list[Page | tuple[Target, Fault]]:
    """
    All pages at once, each one whole or with the fault that stopped it.

    Args:
        pages: What to read.
        access: How.
        clock: Seconds on a clock that never goes back.
        told: Statuses of refusals that are pages, too, since they say why.

    Raises:
        InputError: The certificates to trust cannot be read.
    """
    import asyncio

    trust = _trust(access) if any(page.url.startswith("https:") for page in pages) else False
    return asyncio.run(_fetch_all(pages, access, clock, trust, told))


async def _fetch_all(
    pages: Sequence[Target],
    access: Access,
    clock: Callable[[], float],
    trust: ssl.SSLContext | bool,
    told: frozenset[int],
) -> list[Page | tuple[Target, Fault]]:
    import asyncio

    import httpx

    gate = asyncio.Semaphore(TOGETHER)
    headers = {"User-Agent": "rlsize", "Accept": "text/plain", "Accept-Encoding": "identity"}
    async with httpx.AsyncClient(
        verify=trust, trust_env=False, follow_redirects=False, headers=headers, timeout=httpx.Timeout(access.seconds)
    ) as client:

        async def one(page: Target) -> Page | tuple[Target, Fault]:
            async with gate:
                return await _fetch_one(client, page, access, clock, told)

        return await asyncio.gather(*(one(page) for page in pages))


async def _fetch_one(
    client: httpx.AsyncClient, page: Target, access: Access, clock: Callable[[], float], told: frozenset[int]
) -> Page | tuple[Target, Fault]:
    import asyncio

    import httpx

    try:
        async with asyncio.timeout(access.seconds):
            return await _read(client, page, access, clock, told)
    except InputError as error:
        return page, error.faults[0]
    except (TimeoutError, httpx.TimeoutException):
        fault = Fault(f"gave no whole page within {access.seconds:g} s", page.shown, "is it up? --timeout allows more")
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError) as error:
        fault = _broken(error, page, access)
    return page, fault


async def _read(
    client: httpx.AsyncClient, page: Target, access: Access, clock: Callable[[], float], told: frozenset[int]
) -> Page:
    import httpx

    login = access.login_of(page)
    auth: Any = httpx.BasicAuth(*login) if login else None
    headers = {"Authorization": f"Bearer {access.token}"} if access.token and not login else {}
    async with client.stream("GET", page.url, headers=headers, auth=auth) as response:
        answered = clock()
        if response.status_code not in told:
            _check_answer(response, page, access)
        content = bytearray()
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > access.largest:
                raise InputError(_too_large(page, access))
    return Page(page, answered, bytes(content), response.status_code)


def _check_answer(response: httpx.Response, page: Target, access: Access) -> None:
    status = response.status_code
    if 300 <= status < 400:  # noqa: PLR2004 (HTTP's redirects)
        goal = masked(without(response.headers.get("location", "nowhere"), *access.secrets(page)))
        raise InputError(
            Fault(
                f"answers {status}, a redirect to {goal}",
                page.shown,
                "redirects are not followed; name the page itself",
            )
        )
    if status in {401, 403}:
        raise InputError(
            Fault(
                f"answers {status}: it wants to know who asks",
                page.shown,
                f"give a token in {TOKEN_VARIABLE} or with --token-file, or a login in {LOGIN_VARIABLE}",
            )
        )
    if status == 404:  # noqa: PLR2004 (HTTP's not found)
        raise InputError(
            Fault(
                "answers 404: there is no such page",
                page.shown,
                "vLLM and SGLang serve theirs under /metrics, TensorRT-LLM under /prometheus/metrics",
            )
        )
    if status != OK:
        raise InputError(Fault(f"answers {status} instead of a page", page.shown, "look at the engine's log"))
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise InputError(
            Fault(
                "sends a compressed page though asked for a plain one",
                page.shown,
                "name the engine itself, not a proxy",
            )
        )
    length = response.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 15 or int(length) > access.largest):  # noqa: PLR2004 (more digits than any size)
        raise InputError(_too_large(page, access))


def _too_large(page: Target, access: Access) -> Fault:
    return Fault(f"sends more than {access.largest / 2**20:g} MiB", page.shown, "is it one engine's metrics page?")


def _broken(error: Exception, page: Target, access: Access) -> Fault:
    text = without(" ".join(str(error).split()), *access.secrets(page))
    text = text if len(text) <= 160 else f"{text[:156]}..."  # noqa: PLR2004 (two lines of a terminal)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return Fault(
            f"shows a certificate that is not trusted ({text})",
            page.shown,
            "name its authority with --ca FILE, or skip the check with --insecure",
        )
    return Fault(
        f"cannot be read: {text or 'the connection broke off'}",
        page.shown,
        "check the address, and whether the engine is up",
    )


def _trust(access: Access) -> ssl.SSLContext | bool:
    import ssl

    if access.insecure:
        return False
    try:
        return ssl.create_default_context(cafile=access.authority)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = f"cannot be read as certificates: {reason}"
        raise InputError(Fault(what, access.authority or "the system's certificates", "give a PEM file")) from None
