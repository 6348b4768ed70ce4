"""How servers are asked, as flags and the environment say it: token, login, certificates, patience."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.shell.command import option, switch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.readers.http_pages import Access, Target
    from rlsize.shell.inputs import Inputs

_ACCESS = "Access"

_TOKEN = "File with a bearer token; RLSIZE_BEARER_TOKEN or RLSIZE_BASIC_AUTH without it."  # noqa: S105 (a help text)
TOKEN_FILE = option("--token-file", _TOKEN, _ACCESS, "FILE")
AUTHORITY = option("--ca", "Certificates to trust instead of the system's (PEM).", _ACCESS, "FILE")
INSECURE = switch("--insecure", "Do not check certificates.", _ACCESS)


def access_to(
    targets: Sequence[Target], inputs: Inputs, token_file: str | None, authority: str | None, *, insecure: bool
) -> Access:
    """
    How to ask targets; what is wrong with it is noted, and so is a secret that others can read on its way.

    Args:
        targets: What is asked.
        inputs: Says how long to wait, and takes the faults.
        token_file: File with a token, which goes before the environment's.
        authority: File of certificates to trust instead of the system's.
        insecure: Whether to skip the check of certificates.
    """
    from rlsize.readers.http_pages import LOGIN_VARIABLE, Access, basic_login, bearer_token

    patience = inputs.ask("timeout_seconds")
    token, login = "", None
    with blamed(inputs, ""):
        token = bearer_token(os.environ, token_file)
    with blamed(inputs, ""):
        login = basic_login(os.environ)
    if token and login:
        inputs.fault("a token and a login are given", LOGIN_VARIABLE, "give one of them")
    if (token or login) and any(target.exposed for target in targets):
        secret = "token" if token else "password"
        inputs.warnings.append(f"the {secret} goes over plain http, which anyone on the way can read; https hides it")
    seconds = patience.number if patience.known else 0.0
    return Access(token=token, login=login, authority=authority, insecure=insecure, seconds=seconds)


@contextmanager
def blamed(inputs: Inputs, flag: str, todo: str = "") -> Iterator[None]:
    """Note what is wrong with a flag, and go on."""
    try:
        yield
    except InputError as error:
        inputs.blame(error, flag)
    except ValueError as error:
        inputs.fault(str(error), flag, todo)
