#!/usr/bin/env python3
"""Do one job of this repository in the environment .venv, which is made on first use.

    python3 make.py report    test the NumPy reference; the report goes to build/reference
    python3 make.py test      run the tests, without the slow ones
    python3 make.py lint      ruff and mypy
    python3 make.py bench     the benchmark
    python3 make.py clean     remove what these jobs made

Needs Python 3.10 and nothing else. Arguments after the job go to the command it runs.
"""

import shutil
import sys

if sys.version_info < (3, 10):  # noqa: UP036 - nothing has been installed yet
    found = [name for name in (f"python3.{minor}" for minor in range(19, 9, -1)) if shutil.which(name)]
    advice = f"use {found[0]}" if found else "install a newer one"
    sys.exit(f"make.py: needs Python 3.10 or newer, and this one is {sys.version.split()[0]}: {advice}")

import hashlib
import os
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = str(VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
STAMP = VENV / "made-by-make.py"
"""Says what is installed. If this file exists, make.py made the environment and may remove it."""

JOBS = {
    "report": [["conformance", "run", "reference", "--out", "build/reference"]],
    "test": [["pytest", "-m", "not slow", "-n", "auto", "--dist", "worksteal"]],
    "lint": [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    "bench": [["tools.benchmarks"]],
}
EXTRAS = {"test": "[test]", "lint": "[test]"}
CLEAN = ["build/*", "dist", "*.egg-info", ".mypy_cache", ".pytest_cache", ".ruff_cache", "**/__pycache__"]

KEPT = ["backends", "certificates", "lab"]
"""In build/: what `tools.lab` made, such as private keys and the evidence of runs."""


def main(arguments: list[str]) -> int:
    """Run the job that is named first."""
    job, *rest = arguments or ["--help"]
    if job in ("--help", "-h"):
        print(__doc__)
        return 0
    if job == "clean":
        return clean()
    if job not in JOBS:
        return say(f"no job {job!r}: choose one of {', '.join([*JOBS, 'clean'])}", 2)
    return prepare(EXTRAS.get(job, "")) or perform(JOBS[job], rest)


def perform(commands: list[list[str]], rest: list[str]) -> int:
    """Run Python modules of the environment in turn, and stop at the first that fails.

    They keep their bytecode, even if a variable forbids it: the tests start many processes of the same modules.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for module, *arguments in commands:
        print("+", shlex.join([module, *arguments, *rest]), flush=True)
        command = [PYTHON, "-m", module, *arguments, *rest]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if code:
            return code
    return 0


def prepare(extras: str) -> int:
    """Make .venv and install the suite there, unless that was done for this very pyproject.toml."""
    identity = f"{sys.version_info[0]}.{sys.version_info[1]} in {ROOT}"
    pinned = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    known, installed = (STAMP.read_text(encoding="utf-8") + "\n\n").split("\n")[:2] if STAMP.is_file() else ("", "")
    sound = known == identity and works()
    if sound and installed in (pinned + extras, pinned + "[test]"):
        return 0
    if STAMP.is_file() and not sound:
        if VENV.is_symlink():
            return say(f"{VENV} is a link to what another clone made: remove the link and try again", 1)
        shutil.rmtree(VENV)
    if not os.path.lexists(VENV) and create():
        return 1
    if not works():
        return say(f"{VENV} holds no Python 3.10 or newer that runs: remove it and try again", 1)
    print(f"make.py: installing into {VENV}", flush=True)
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    if subprocess.run([*pip, "--editable", f".{extras}"], cwd=ROOT, check=False).returncode:
        return say(f"pip could not install the suite and what it needs into {VENV}: see above", 1)
    STAMP.write_text(f"{identity}\n{pinned}{extras}\n", encoding="utf-8")
    return 0


def create() -> int:
    """Make a new environment. Debian needs one more package for that."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        name = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        return say(f"this Python cannot make environments: install {name} (sudo apt install {name}) and try again", 1)
    VENV.mkdir()
    STAMP.write_text("unfinished", encoding="utf-8")
    if subprocess.run([sys.executable, "-m", "venv", VENV], check=False).returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        return say(f"could not make {VENV}: see above", 1)
    return 0


def works() -> bool:
    """Ask if the Python in .venv runs and is new enough."""
    question = "import sys; sys.exit(sys.version_info < (3, 10))"
    return os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", question], check=False).returncode == 0


def clean() -> int:
    """Remove what the jobs made; an environment that someone else made stays, and so does what the lab made."""
    kept = [ROOT / "build" / name for name in KEPT]
    made = [path for pattern in CLEAN for path in ROOT.glob(pattern) if path not in kept]
    for found in made + ([VENV] if STAMP.is_file() else []):
        shutil.rmtree(found, ignore_errors=True)
        if found.is_file():
            found.unlink()
    return 0


def say(message: str, code: int) -> int:
    """Print one line on the error stream and return the exit code."""
    print(f"make.py: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(say("interrupted", 130))
