"""What changes in a file, as a unified diff that repeats no secret."""

from __future__ import annotations

import difflib
import re

_NAMES = r"(?:token|secret|passwd|password|credentials?|api[_-]?key|access[_-]?key|private[_-]?key)"
_NAMED = re.compile(
    rf"""((?<![\w.-])[\w.-]*{_NAMES}["']?\s*[:=]\s*["']?(?:Bearer\s+)?|--[\w.-]*{_NAMES}\s+["']?)(?!\$)[^\s"',]{{4,}}""",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|glpat-|xox[abp]-|AKIA)[\w-]{8,}|(?<=://)[^\s/@]+:[^\s/@]+(?=@)|\b[0-9a-f]{40}\b"
)


def difference(before: str, after: str, name: str, target: str) -> str:
    """
    A unified diff; what looks like a token, a key or a password is masked in it.

    Args:
        before: The file as it was.
        after: As it is to be.
        name: Its name.
        target: The name of the file that is written.
    """
    old, new = (masked(side.replace("\r\n", "\n")).splitlines(keepends=True) for side in (before, after))
    lines = difflib.unified_diff(old, new, name, target)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def masked(text: str) -> str:
    """
    A text without its secrets.

    >>> masked("export HF_TOKEN=hf_abcdefghij max_tokens=4096 --wandb-api-key 'k3yk3y'")
    "export HF_TOKEN=*** max_tokens=4096 --wandb-api-key '***'"
    """
    return _TOLD.sub("***", _NAMED.sub(r"\1***", text))
