"""A line of text to a webhook, as Slack and its like take it; whose address is a secret, and who may be dead."""

from __future__ import annotations

import json
import os
import sys
import threading
import urllib.error
import urllib.request
from http.client import HTTPException
from urllib.parse import urlsplit

from rlsize.errors import Fault, InputError
from rlsize.readers.yaml_documents import read_text

VARIABLE = "RLSIZE_WEBHOOK"
SECONDS = 10.0
_LONGEST = 4096


class Webhook:
    """
    Where texts are sent, each by a thread of its own, so that nobody waits.

    Args:
        url: The address; it is never shown.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._sending: list[threading.Thread] = []
        self._told = ""

    def send(self, text: str) -> None:
        """Send a text; what becomes of it is told on stderr, once for each way to fail."""
        self._sending = [one for one in self._sending if one.is_alive()]
        thread = threading.Thread(target=self._send, args=(json.dumps({"text": text}).encode(),), daemon=True)
        self._sending.append(thread)
        thread.start()

    def finish(self) -> None:
        """Wait until all is sent, or has failed."""
        for one in self._sending:
            one.join(SECONDS)

    def _send(self, content: bytes) -> None:
        request = urllib.request.Request(self._url, content, {"Content-Type": "application/json"})  # noqa: S310 (read_webhook takes http and https only)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS):  # noqa: S310 (likewise)
                why = ""
        except urllib.error.HTTPError as error:
            why = f"answers {error.code}"
        except (OSError, HTTPException, ValueError) as error:  # whose text may hold the address
            why = f"cannot be reached ({type(error).__name__})"
        if why and why != self._told:
            sys.stderr.write(f"warning: the webhook {why}; the watch goes on\n")
        self._told = why


def read_webhook(file: str | None) -> Webhook | None:
    """
    The webhook that a file or the environment names; None where neither does.

    Args:
        file: A file with its address.

    Raises:
        InputError: The file cannot be read, or holds no address.
    """
    where = file or VARIABLE
    url = (os.environ.get(VARIABLE, "") if file is None else read_text(file)).strip()
    if not url and file is None:
        return None
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        whole = False
    if not whole or len(url) > _LONGEST:
        raise InputError(Fault("holds no address of a webhook", where, "write https://..., and nothing else"))
    return Webhook(url)
