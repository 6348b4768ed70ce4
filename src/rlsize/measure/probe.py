"""What a Python can do: whether it has torch, transformers and vLLM, asked without loading them."""

from __future__ import annotations

import json
import subprocess

from rlsize.errors import Fault, InputError

PATIENCE_SECONDS = 60.0
LIBRARIES = ("torch", "transformers", "vllm")
_ASK = (
    "import importlib.util as u, json, sys; "
    "print(json.dumps([name for name in sys.argv[1:] if u.find_spec(name) is not None]))"
)


def libraries(python: str, flag: str) -> frozenset[str]:
    """
    Which of torch, transformers and vllm a Python has.

    Args:
        python: The program.
        flag: The flag that named it, for messages.

    Raises:
        InputError: It is no Python that runs here.
    """
    todo = "name a Python program, as .venv/bin/python"
    try:
        asked = subprocess.run(  # noqa: S603 (the user's own Python, asked in words of ours)
            [python, "-c", _ASK, *LIBRARIES], capture_output=True, timeout=PATIENCE_SECONDS, check=False, text=True
        )
        found = json.loads(asked.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {PATIENCE_SECONDS:.0f} s"
        raise InputError(Fault(f"{python} cannot be run: {reason}", flag, todo)) from None
    except ValueError:
        raise InputError(Fault(f"{python} does not answer as a Python does", flag, todo)) from None
    return frozenset(found)
