"""
Get what the Prometheus tests need: the programs `prometheus` and `promtool`.

    python tests/prometheus/install.py      # prints the folder of the programs; installs what is missing first

They are those that RLSIZE_PROMETHEUS_BIN (a folder) or PATH holds; where there are none, root on Debian installs
Debian's package by apt-get. Its service is not needed, and no test uses it. Exit code 77: they cannot be had here;
stderr says why. `clients` has versions of prometheus_client, each in a folder of the cache, and `newest` the programs
of Debian's unstable suite, a Prometheus 3, which is unpacked there and installed nowhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("prometheus", "promtool")
FOLDER_VARIABLE = "RLSIZE_PROMETHEUS_BIN"
MOST_SECONDS = 300
CANNOT = 77
CLIENTS = ("0.20.0", "0.22.1", "0.23.1", "0.26.0")
"""The oldest that vLLM takes, the last that answers every Prometheus alike, the first that does not, and the newest."""


def main() -> int:
    """Print the folder of the programs, installed where they are not."""
    reason = unfit()
    if reason:
        sys.stderr.write(f"no Prometheus tests on this machine: {reason}\n")
        return CANNOT
    try:
        if missing():
            install()
        clients()
        newest()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"the Prometheus tests cannot be set up here: {' '.join(error.cmd[:4])} ... failed\n")
        return CANNOT
    if missing():
        sys.stderr.write(f"no Prometheus tests on this machine: the package brought no {' and no '.join(missing())}\n")
        return CANNOT
    sys.stdout.write(f"{Path(program(PROGRAMS[0])).parent}\n")
    return 0


def unfit() -> str:
    """Why they cannot be had on this machine; empty where they can."""
    if not missing():
        return ""
    if os.environ.get(FOLDER_VARIABLE):
        return f"{FOLDER_VARIABLE} names a folder without {' and '.join(missing())}"
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("apt-get"):
        return (
            f"there is no {' and no '.join(missing())}, and only root on Debian can install: apt-get install prometheus"
        )
    return ""


def missing() -> list[str]:
    """The programs that are not there."""
    return [name for name in PROGRAMS if not program(name)]


def program(name: str) -> str:
    """The path of a program; empty where there is none."""
    return shutil.which(name, path=os.environ.get(FOLDER_VARIABLE) or None) or ""


def install() -> None:
    """
    Install Debian's package.

    Raises:
        CalledProcessError: The package cannot be had.
        TimeoutExpired: It takes too long.
    """
    sys.stderr.write("installing prometheus by apt-get: about half a minute, 150 MB\n")
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "prometheus")


def clients() -> dict[str, Path]:
    """The folder of each version of prometheus_client that can be had, kept in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlsize" / "prometheus_client"
    found = {version: cache / version for version in CLIENTS}
    for version, folder in found.items():
        if not (folder / "prometheus_client").is_dir():
            pip = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps")
            with suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
                run(*pip, "--target", str(folder), f"prometheus_client=={version}")
    return {version: folder for version, folder in found.items() if (folder / "prometheus_client").is_dir()}


def newest() -> Path | None:
    """The folder of the newest Prometheus that Debian has, kept in the cache; None where it cannot be had."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlsize" / "prometheus"
    programs = folder / "usr" / "bin"
    if not all((programs / name).is_file() for name in PROGRAMS):
        with suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError, ValueError):
            _unpack(folder)
    return programs if all((programs / name).is_file() for name in PROGRAMS) else None


def _unpack(folder: Path) -> None:
    """Debian's packages of its unstable suite, by lists of their own, from where this machine gets its others."""
    for part in ("lists", "cache"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    form = "$(LABEL) $(COMPONENT) $(REPO_URI)"
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", form], capture_output=True, check=True, text=True, timeout=MOST_SECONDS
    )
    where = next(line.split()[2] for line in told.stdout.splitlines() if line.startswith("Debian main "))
    sources = folder / "sources.list"
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    sources.write_text(f"deb [signed-by={keys}] {where} unstable main\n", encoding="utf-8")
    own = {
        "Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "-", "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache", "APT::Sandbox::User": "root",
    }  # fmt: skip
    options = [text for key, value in own.items() for text in ("-o", f"{key}={value}")]
    run("apt-get", *options, "update", "-qq")
    run("apt-get", *options, "download", "-qq", *PROGRAMS, folder=folder / "cache")
    for package in (folder / "cache").glob("*.deb"):
        run("dpkg-deb", "-x", str(package), str(folder))
    shutil.rmtree(folder / "cache")
    shutil.rmtree(folder / "lists")


def run(*argv: str, folder: Path | None = None) -> None:
    """Run a program for a limited time; what it prints goes to stderr, as stdout is for the answer."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(argv, check=True, stdout=sys.stderr, env=quiet, timeout=MOST_SECONDS, cwd=folder)


if __name__ == "__main__":
    sys.exit(main())
