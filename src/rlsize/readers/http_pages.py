"""
Pages over HTTP, read as if nobody could be trusted: bounded in time and size, no redirects, no secrets in any message.

Which pages a user means is found out before anything is asked. All pages of a round are read together on one event
loop, because only a task can be cancelled: a server that drips one byte a second defeats a thread's time-outs. Proxies
of the environment are not used (engines stand on the same network, and a proxy would see the token); the certificates
are the system's.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from rlsize.errors import Fault, InputError, refuse
from rlsize.frozen import dataclass
from rlsize.units import cut

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import httpx

DEFAULT_PATH = "/metrics"
TOKEN_VARIABLE = "RLSIZE_BEARER_TOKEN"  # noqa: S105 (the name of a variable, not a token)
LOGIN_VARIABLE = "RLSIZE_BASIC_AUTH"
LARGEST_TOKEN = 16 * 2**10
LONGEST_URL = 2000
MASK = "***"
OK = 200
TOGETHER = 32  # pages in flight at a time
_WHO = f"give a token in {TOKEN_VARIABLE} or with --token-file, or a login in {LOGIN_VARIABLE}"
_WHERE = "vLLM and SGLang serve theirs under /metrics, TensorRT-LLM under /prometheus/metrics"
_REFUSALS = {
    401: (": it wants to know who asks", _WHO),
    403: (": it wants to know who asks", _WHO),
    404: (": there is no such page", _WHERE),
}
"""What a status means, and what to do about it."""

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:(?![0-9])")
_UNPRINTABLE = re.compile(r"[\s\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True)
class Target:
    """
    A page to read.

    Args:
        url: Where it is, without user and password.
        shown: What to call it: host and port, and the path where it is unusual; no secrets.
        login: User and password that the URL carried.
    """

    url: str = field(repr=False)
    shown: str
    login: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def exposed(self) -> bool:
        """Whether others on the way can read what is sent there."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}


def targets(urls: Iterable[str]) -> list[Target]:
    """
    The pages that URLs mean: `host:port` is `http://host:port/metrics`.

    Raises:
        InputError: Everything that is wrong with them; nothing is asked for before.

    >>> [target.url for target in targets(["engine-0:8000", "https://engine-1/m"])]
    ['http://engine-0:8000/metrics', 'https://engine-1/m']
    """
    found: dict[str, Target] = {}
    faults: list[Fault] = []
    for url in urls:
        try:
            target = _target(url)
        except ValueError as error:
            faults.append(Fault(str(error), masked(url), "write http://HOST:PORT, https://HOST/metrics or HOST:PORT"))
            continue
        if target.url in found:
            todo = "name each engine once; data-parallel ranks of one page are told apart"
            faults.append(Fault("is named twice", target.shown, todo))
        found[target.url] = target
    refuse(faults)
    return list(found.values())


def api_target(url: str) -> Target:
    """
    A server with an API below its URL.

    Raises:
        InputError: What is wrong with the URL; nothing is asked for before.

    >>> api_target("https://prometheus:9090/team/").url
    'https://prometheus:9090/team'
    """
    todo = "write http://HOST:PORT, or https://HOST/PATH"
    try:
        target = _target(url.rstrip("/") if url else url, path="")
    except ValueError as error:
        raise InputError(Fault(str(error), masked(url), todo)) from None
    if "?" in target.url:
        raise InputError(Fault("holds a query", masked(url), todo))
    return target


def basic_login(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """
    User and password of the environment; None where there are none.

    Raises:
        InputError: They are not written as USER:PASSWORD; the message shows neither.
    """
    text = environment.get(LOGIN_VARIABLE, "")
    if not text:
        return None
    user, colon, password = text.partition(":")
    if not colon or not user or not text.isprintable() or len(text) > LARGEST_TOKEN:
        raise InputError(Fault("is no login", LOGIN_VARIABLE, "write USER:PASSWORD, without line breaks"))
    return user, password


def bearer_token(environment: Mapping[str, str], path: str | None) -> str:
    """
    The token of a file, else of the environment, else none.

    Raises:
        InputError: It cannot be read, or is not one printable word; the message does not show it.
    """
    from rlsize.readers.yaml_documents import read_text

    where = path or TOKEN_VARIABLE
    token = (read_text(path, LARGEST_TOKEN) if path else environment.get(TOKEN_VARIABLE, "")).strip()
    if path and not token:
        raise InputError(Fault("is empty", where, "write the token into it"))
    if token and (not token.isascii() or _UNPRINTABLE.search(token)):
        what = "is not a token: it holds blanks or characters that no header may carry"
        raise InputError(Fault(what, where, "write the token alone, on one line"))
    return token


def _target(url: str, path: str = DEFAULT_PATH) -> Target:
    import httpx

    if len(url) > LONGEST_URL or not url:
        raise ValueError("is no URL" if not url else "is too long for a URL")
    if _UNPRINTABLE.search(url):
        raise ValueError("holds blanks or control characters")
    if "://" not in url and _SCHEME.match(url):
        raise ValueError(f"has the scheme {url.partition(':')[0]}; only http and https are read")
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in {"http", "https"}:
        raise ValueError(f"has the scheme {parts.scheme or 'of nothing'}; only http and https are read")
    if not parts.hostname:
        raise ValueError("names no host")
    if parts.port == 0:
        raise ValueError("has the port 0")
    login = (parts.username or "", parts.password or "") if "@" in parts.netloc else None
    where = parts.path if parts.path not in {"", "/"} else path
    clean = SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], where, parts.query, "")
    try:
        httpx.URL(urlunsplit(clean))
    except (httpx.InvalidURL, UnicodeError):
        raise ValueError("is no URL") from None
    shown = clean.netloc if where == path and not parts.query else masked(urlunsplit(clean))
    return Target(urlunsplit(clean), shown, login)


def masked(url: str) -> str:
    """The URL without what may be secret: user, password and query."""
    text = "".join(character if character.isprintable() else "?" for character in url)
    text = re.sub(r"(//)?[^/@\s]*@", lambda match: f"{match[1] or ''}{MASK}@", text)
    text = re.sub(r"\?.*", f"?{MASK}", text)
    return cut(text, 100)


def without(text: str, *secrets: str) -> str:
    """The text without the secrets, should a server have sent them back."""
    for secret in filter(None, secrets):
        text = text.replace(secret, MASK)
    return text


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

    login = access.login_of(page)
    auth: Any = httpx.BasicAuth(*login) if login else None
    headers = {"Authorization": f"Bearer {access.token}"} if access.token and not login else {}
    content = bytearray()
    try:
        async with (
            asyncio.timeout(access.seconds),
            client.stream("GET", page.url, headers=headers, auth=auth) as answer,
        ):
            answered = clock()
            if answer.status_code not in told:
                _check_answer(answer, page, access)
            async for chunk in answer.aiter_raw():
                content += chunk
                if len(content) > access.largest:
                    return page, _too_large(page, access)
            return Page(page, answered, bytes(content), answer.status_code)
    except InputError as error:
        return page, error.faults[0]
    except (TimeoutError, httpx.TimeoutException):
        todo = "is it up? --timeout allows more"
        return page, Fault(f"gave no whole page within {access.seconds:g} s", page.shown, todo)
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError) as error:
        return page, _broken(error, page, access)


def _check_answer(response: httpx.Response, page: Target, access: Access) -> None:
    status = response.status_code
    if status != OK:
        what, todo = _REFUSALS.get(status, (" instead of a page", "look at the engine's log"))
        if 300 <= status < 400:  # noqa: PLR2004 (HTTP's redirects)
            goal = masked(without(response.headers.get("location", "nowhere"), *access.secrets(page)))
            what, todo = f", a redirect to {goal}", "redirects are not followed; name the page itself"
        raise InputError(Fault(f"answers {status}{what}", page.shown, todo))
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        what, todo = "sends a compressed page though asked for a plain one", "name the engine itself, not a proxy"
        raise InputError(Fault(what, page.shown, todo))
    length = response.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 15 or int(length) > access.largest):  # noqa: PLR2004 (more digits than any size)
        raise InputError(_too_large(page, access))


def _too_large(page: Target, access: Access) -> Fault:
    return Fault(f"sends more than {access.largest / 2**20:g} MiB", page.shown, "is it one engine's metrics page?")


def _broken(error: Exception, page: Target, access: Access) -> Fault:
    text = cut(without(" ".join(str(error).split()), *access.secrets(page)), 160)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        todo = "name its authority with --ca FILE, or skip the check with --insecure"
        return Fault(f"shows a certificate that is not trusted ({text})", page.shown, todo)
    what = f"cannot be read: {text or 'the connection broke off'}"
    return Fault(what, page.shown, "check the address, and whether the engine is up")


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
