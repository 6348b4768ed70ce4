"""
Get what loads configurations: packages of RL frameworks, each by itself, and what their reading of them needs.

    python tests/frameworks_loaded/install.py   # prints the folder; installs what is missing first

The folder lies in the user's cache and is kept between runs; RLSIZE_FRAMEWORKS_FOLDER puts it elsewhere. It holds `env`
(Hydra, OmegaConf, transformers; no torch), and of each framework NAME-VERSION, the release nearest to the source that
its profile was read in, and at night NAME-newest, which is asked for again every day. A release that cannot be had is
left out.
Exit code 77: nothing can be had here; stderr says why.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

LIBRARIES = ("hydra-core==1.3.8", "omegaconf==2.3.1", "transformers==5.23.0")
RELEASES = {
    "verl": "0.9.0", "openrlhf": "0.11.2", "trl": "1.8.0", "areal": "1.0.4", "skyrl": "0.3.0",
}  # fmt: skip
"""Of each framework, the release nearest to its profile's source."""
NEWEST = "newest"
A_DAY = 24 * 3600
MOST_SECONDS = 120
CANNOT = 77


def main() -> int:
    """Print the folder, filled where it is not."""
    folder = place()
    env = folder / "env"
    stamp = hashlib.sha256(repr(LIBRARIES).encode()).hexdigest()
    try:
        if not _is_fresh(env, stamp):
            build(env, stamp)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"no framework can be loaded here: {' '.join(error.cmd[1:6])} ... failed\n")
        return CANNOT
    for name, version in RELEASES.items():
        for release in (version, *([NEWEST] if os.environ.get("RLSIZE_NIGHTLY") else [])):
            bring(env, folder, name, release)
    sys.stdout.write(f"{folder}\n")
    return 0


def place() -> Path:
    """Where all of it lies."""
    said = os.environ.get("RLSIZE_FRAMEWORKS_FOLDER")
    if said:
        return Path(said).resolve()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "rlsize" / f"frameworks-python{sysconfig.get_python_version()}"


def _is_fresh(folder: Path, stamp: str, seconds: float = float("inf")) -> bool:
    marker = folder / "complete"
    there = marker.is_file() and marker.read_text(encoding="utf-8") == stamp
    return there and time.time() - marker.stat().st_mtime < seconds


def build(env: Path, stamp: str) -> None:
    """
    Make the environment anew.

    Args:
        env: Its folder.
        stamp: What tells that it is whole.

    Raises:
        CalledProcessError: Something cannot be installed.
        TimeoutExpired: It takes too long.
    """
    sys.stderr.write(f"installing {', '.join(LIBRARIES)} into {env}: half a minute, 300 MB\n")
    shutil.rmtree(env, ignore_errors=True)
    run(sys.executable, "-m", "venv", str(env))
    run(*_pip(env), "install", *LIBRARIES)
    (env / "complete").write_text(stamp, encoding="utf-8")


def bring(env: Path, folder: Path, name: str, release: str) -> None:
    """
    Unpack a release, a few megabytes; an older one of `newest` stays where there is no index.

    Args:
        env: The environment whose pip does it.
        folder: Where it goes.
        name: The framework, as packages name it.
        release: Its version, or `newest`.
    """
    target, new = folder / f"{name}-{release}", folder / f"{name}-{release}.new"
    if _is_fresh(target, release, A_DAY if release == NEWEST else float("inf")):
        return
    shutil.rmtree(new, ignore_errors=True)
    wanted = name if release == NEWEST else f"{name}=={release}"
    alone = ("--no-deps", "--no-compile", "--only-binary", ":all:", "--ignore-requires-python", "--target", str(new))
    try:
        run(*_pip(env), "install", *alone, wanted)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        sys.stderr.write(f"{wanted} cannot be had here\n")
        return
    (new / "complete").write_text(release, encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)


def _pip(env: Path) -> tuple[str, ...]:
    return (str(env / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*argv: str) -> None:
    """Run a program for a limited time; what it prints goes to stderr, as stdout is for the answer."""
    subprocess.run(argv, check=True, stdout=sys.stderr, timeout=MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
