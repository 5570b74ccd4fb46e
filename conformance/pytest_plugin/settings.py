"""Read how a pytest session calls the backend: as `conformance run` does, with the same limits, waivers and claims.

docs/pytest.md lists the options, `--conformance-NAME`, each also a setting `conformance_NAME` of pytest.
`--conformance-jobs N` needs less time of the processor than `-n N`, in which each worker loads the suite and makes its
plan. Together they would start N times as many processes as either says.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast, get_args

import pytest

from ..cli.arguments import Stop
from ..cli.parser import MAX_WHOLE, positive, seconds
from ..cli.request import read_claims, refuse_wrong_cases
from ..cli.run_summary import relative
from ..evidence.command import limits_of
from ..evidence.results import Target
from ..isolate.backend import Isolation, choose_limits, isolation_of
from ..plan.rows import Plan
from ..runner.run_suite import RunRequest
from ..system.text import describe_unknown

Value = TypeVar("Value")


def read_request(config: pytest.Config, plan: Plan, target: Target) -> RunRequest:
    """Return the request of the session; Stop if an option or the configuration cannot be carried out."""
    refuse_wrong_cases(plan)
    backend = config.option.conformance_adapter
    claims, waivers = _read_file_names(config, "claims"), _read_file_names(config, "waivers")
    if len(claims) > 1:
        raise Stop("--conformance-claims is given twice; give it once")
    drawn_rows = config.option.conformance_drawn_rows or 0
    if not 0 <= drawn_rows <= MAX_WHOLE:
        raise Stop(f"--drawn-rows {drawn_rows} is not a whole number from 0 to 10^9; write --drawn-rows 100")
    isolation = isolation_of(backend, _read(config, "isolation", _isolation))
    timeout, memory = _read(config, "timeout", seconds), _read(config, "memory", positive)
    return RunRequest(
        backend=backend,
        plan=plan,
        target=target,
        isolation=isolation,
        limits=choose_limits(backend, timeout, memory),
        jobs=_read_jobs(config, backend, isolation),
        waivers=waivers,
        pinned=(claims[0], read_claims(claims[0])) if claims else None,
        drawn_rows=drawn_rows,
    )


def list_limit_options(request: RunRequest) -> list[str]:
    """Return the options for the isolation and the limits, where they are not the usual ones."""
    options: dict[str, str] = (
        {"isolation": request.isolation} if request.isolation != isolation_of(request.backend) else {}
    )
    limits = limits_of(request.limits, request.backend)
    options |= {name: str(value).removesuffix(".0") for name, value in limits.items()}
    return [word for name, value in options.items() for word in (f"--conformance-{name}", value)]


def _read(config: pytest.Config, name: str, read: Callable[[str], Value]) -> Value | None:
    """Read a value of the command line or else of the configuration; None if neither has it."""
    text = getattr(config.option, f"conformance_{name}")
    place = f"--conformance-{name}"
    if text is None:
        text, place = config.getini(f"conformance_{name}"), f"{config.inipath}: conformance_{name}"
        if not text:
            return None
        setattr(config.option, f"conformance_{name}", text)  # the workers of xdist read it there
    try:
        return read(text)
    except argparse.ArgumentTypeError as error:
        raise Stop(f"{place}: {str(error).replace('OPTION', f'--conformance-{name}')}") from None


def _isolation(text: str) -> Isolation:
    if text not in get_args(Isolation):
        raise argparse.ArgumentTypeError(describe_unknown("isolation", text, get_args(Isolation)))
    return cast("Isolation", text)


def _read_file_names(config: pytest.Config, name: str) -> tuple[Path, ...]:
    """Return the files that an option names, or the lines of a setting; relative where they lie below this folder."""
    given, folder = getattr(config.option, f"conformance_{name}"), config.invocation_params.dir
    if given is None:
        given = config.getini(f"conformance_{name}")
        given = given.splitlines() if isinstance(given, str) else given
        folder = config.inipath.parent if config.inipath else folder
    files = [(folder / file.strip()).absolute() for file in given]
    setattr(config.option, f"conformance_{name}", [*map(str, files)])  # for workers of xdist, which may run elsewhere
    return tuple(Path(relative(file)) for file in files)


def _read_jobs(config: pytest.Config, backend: str, isolation: Isolation) -> int:
    jobs = _read(config, "jobs", positive) or 1
    if jobs > 1 and isolation == "none":
        raise Stop(
            f"--conformance-jobs {jobs} needs processes, and {backend} runs in this one; "
            "add --conformance-isolation worker"
        )
    if jobs > 1 and getattr(config.option, "dist", "no") != "no":
        raise Stop(f"--conformance-jobs {jobs} and -n of pytest-xdist both start processes; drop one of them")
    return jobs
