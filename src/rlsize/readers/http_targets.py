"""Which pages a user means, and how secrets stay out of what is printed about them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit, urlunsplit

from rlsize.errors import Fault, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DEFAULT_PATH = "/metrics"
TOKEN_VARIABLE = "RLSIZE_BEARER_TOKEN"  # noqa: S105 (the name of a variable, not a token)
LOGIN_VARIABLE = "RLSIZE_BASIC_AUTH"
LARGEST_TOKEN = 16 * 2**10
LONGEST_URL = 2000
MASK = "***"

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
        return urlsplit(self.url).scheme == "http" and urlsplit(self.url).hostname not in {
            "localhost",
            "127.0.0.1",
            "::1",
        }


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
            faults.append(
                Fault(
                    "is named twice",
                    target.shown,
                    "name each engine once; data-parallel ranks of one page are told apart",
                )
            )
        found[target.url] = target
    if faults:
        raise InputError(*faults)
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
        raise InputError(
            Fault(
                "is not a token: it holds blanks or characters that no header may carry",
                where,
                "write the token alone, on one line",
            )
        )
    return token


def _target(url: str, path: str = DEFAULT_PATH) -> Target:
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
    _check_for_httpx(urlunsplit(clean))
    shown = clean.netloc if where == path and not parts.query else masked(urlunsplit(clean))
    return Target(urlunsplit(clean), shown, login)


def _check_for_httpx(url: str) -> None:
    import httpx

    try:
        httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):
        raise ValueError("is no URL") from None


def masked(url: str) -> str:
    """The URL without what may be secret: user, password and query."""
    text = "".join(character if character.isprintable() else "?" for character in url)
    text = re.sub(r"(//)?[^/@\s]*@", lambda match: f"{match[1] or ''}{MASK}@", text)
    text = re.sub(r"\?.*", f"?{MASK}", text)
    return text if len(text) <= 100 else f"{text[:96]}..."  # noqa: PLR2004 (a line of a terminal)


def without(text: str, *secrets: str) -> str:
    """The text without the secrets, should a server have sent them back."""
    for secret in filter(None, secrets):
        text = text.replace(secret, MASK)
    return text
