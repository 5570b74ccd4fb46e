"""Ways to measure: CPU time of this process or of a command, the least of several runs, and the memory it took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

REPEATS = 7


class Measured(NamedTuple):
    """The cost of something and of its baseline, in seconds of CPU time unless `unit` differs."""

    ours: float
    baseline: float
    against: str
    """What the baseline is."""
    unit: str = "s"
    """`s` for seconds of CPU time, `s elapsed`, `B` for bytes."""


def cpu(work: Callable[[], object], repeats: int = REPEATS, clock: Callable[[], float] = time.process_time) -> float:
    """CPU seconds of this process, the least of several runs; one more before them warms caches."""

    def once() -> float:
        start = clock()
        work()
        return clock() - start

    work()
    return min(once() for _ in range(repeats))


def cpu_of_command(command: Sequence[str], repeats: int = REPEATS) -> float:
    """CPU seconds of a command and of what it starts, the least of several runs."""
    once(command, exit_codes=(0,))  # warms caches
    return min(once(command, exit_codes=(0,))[0] for _ in range(repeats))


def environment() -> dict[str, str]:
    """The environment of this process, with the very package that is being measured found first.

    Python may keep bytecode there even if this process may not. A person's second command finds the bytecode of the
    first; without it, compiling the suite would be more than half of what is measured.
    """
    found = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, found))}


EXIT_CODES = (0, 1, 4, 5)
"""Those of a command that did what is measured."""


def once(
    command: Sequence[str], exit_codes: Collection[int] = EXIT_CODES, folder: Path | None = None, **variables: str
) -> tuple[float, float]:
    """CPU seconds and elapsed seconds of a command and of what it starts, in one run; it may have further variables."""
    began, known = time.perf_counter(), {**environment(), **variables}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, env=known)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in exit_codes:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime, time.perf_counter() - began


_PEAK = f"""import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)
sys.exit(code not in {EXIT_CODES})
"""


def peak_of_command(command: Sequence[str]) -> int:
    """Peak bytes of a command. A small process starts it: the kernel counts the memory of whoever forks as its own."""
    words = [sys.executable, "-S", "-c", _PEAK, *command]
    return int(subprocess.run(words, check=True, capture_output=True, env=environment()).stdout)
