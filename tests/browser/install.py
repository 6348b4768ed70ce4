"""
Get what the browser tests need: Playwright and axe in a folder of their own, and Debian's Chromium.

    python tests/browser/install.py         # prints the folder of the packages; installs what is missing first

The folder lies in the user's cache and is kept between runs; RLSIZE_BROWSER_FOLDER puts it elsewhere. It is for the
Python that runs this file. Packages are pinned in browser.txt, by hash. Chromium is one that is installed, or
RLSIZE_CHROMIUM; where there is none, root on Debian installs it by apt-get. Exit code 77: it cannot be had here; stderr
says why.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
PINNED = HERE / "browser.txt"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FONTS = "fonts-dejavu-core"  # a machine without any draws no text
MOST_SECONDS = 300
CANNOT = 77


def main() -> int:
    """Print the folder of the packages, filled where it is not."""
    reason = unfit()
    if reason:
        sys.stderr.write(f"no browser tests on this machine: {reason}\n")
        return CANNOT
    try:
        if not chromium():
            install_chromium()
        folder = place()
        marker = folder / "complete"
        stamp = hashlib.sha256(Path(__file__).read_bytes() + PINNED.read_bytes()).hexdigest()
        if not (marker.is_file() and marker.read_text(encoding="utf-8") == stamp):
            install_packages(folder)
            marker.write_text(stamp, encoding="utf-8")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"the browser tests cannot be set up here: {' '.join(error.cmd[:4])} ... failed\n")
        return CANNOT
    sys.stdout.write(f"{folder}\n")
    return 0


def unfit() -> str:
    """Why they cannot be had on this machine; empty where they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"browser.txt pins files for Linux on x86-64, not {sys.platform} on {platform.machine()}"
    if not chromium() and (os.geteuid() != 0 or not shutil.which("apt-get")):
        return "there is no Chromium, and only root on Debian can install it: apt-get install chromium"
    return ""


def chromium() -> str:
    """The path of a Chromium; empty where there is none."""
    said = os.environ.get("RLSIZE_CHROMIUM")
    return said or next(filter(None, map(shutil.which, PROGRAMS)), "")


def place() -> Path:
    """Where the packages lie."""
    said = os.environ.get("RLSIZE_BROWSER_FOLDER")
    if said:
        return Path(said).resolve()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "rlsize" / f"browser-python{sysconfig.get_python_version()}"


def install_chromium() -> None:
    """
    Install Debian's Chromium.

    Raises:
        CalledProcessError: The package cannot be had.
        TimeoutExpired: It takes too long.
    """
    sys.stderr.write("installing chromium by apt-get: about a minute, 400 MB\n")
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", FONTS)


def install_packages(folder: Path) -> None:
    """
    Fill the folder anew.

    Raises:
        CalledProcessError: A package cannot be had, or is not the one that is pinned.
        TimeoutExpired: It takes too long.
    """
    sys.stderr.write(f"installing {PINNED.name} into {folder}: 150 MB\n")
    shutil.rmtree(folder, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
    run(*pip, "--no-deps", "--require-hashes", "--only-binary=:all:", "--target", str(folder), "-r", str(PINNED))


def run(*argv: str) -> None:
    """Run a program for a limited time; what it prints goes to stderr, as stdout is for the answer."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(argv, check=True, stdout=sys.stderr, env=quiet, timeout=MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
