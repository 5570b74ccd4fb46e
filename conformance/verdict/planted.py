"""The planted backends that a run or a sweep calls beside the one under test, and must catch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

_MODULE = "conformance.adapters.planted"


class PlantedBackend(NamedTuple):
    """A planted backend, and where it is used."""

    backend: str
    rules: tuple[str, ...] = ()
    """A run calls the rows of these rules: it must fail some, and may pass others. Empty: no run uses it."""
    sweep: str | None = None
    """The name after `planted:` under which a sweep uses it; None: no sweep uses it."""
    ends_process: bool = False
    """Whether it would end the suite's own process; runs use it only in another process."""

    @property
    def name(self) -> str:
        """The name in the footer of a run."""
        return self.backend.rpartition(":")[2]


PLANTED_BACKENDS = (
    PlantedBackend(f"{_MODULE}:AcceptsEverything", ("one-infer", "same-volume"), "accepts-everything"),
    PlantedBackend(f"{_MODULE}:RejectsEverything", ("literal-lengths", "one-infer"), "rejects-everything"),
    PlantedBackend(f"{_MODULE}:FlushesSubnormals", ("same-content", "literal-lengths")),
    PlantedBackend("planted:zero-flag-ignored", sweep="zero-flag-ignored"),
    PlantedBackend(f"{_MODULE}.process:DiesRatherThanReject", ("literal-lengths", "one-infer"), ends_process=True),
)
SWEPT = tuple(planted.sweep for planted in PLANTED_BACKENDS if planted.sweep)
"""The names of the planted backends of a sweep, in its footer and after `planted:`."""


def list_planted(isolation: str) -> tuple[PlantedBackend, ...]:
    """Return the planted backends of every run with an isolation."""
    return tuple(
        planted for planted in PLANTED_BACKENDS if planted.rules and not (planted.ends_process and isolation == "none")
    )


def names(isolation: str = "none") -> tuple[str, ...]:
    """Return the names of the planted backends of a run, as its footer has them."""
    return tuple(planted.name for planted in list_planted(isolation))


def find_uncaught(required: Iterable[str], failures: Mapping[str, int]) -> tuple[str, ...]:
    """Find the planted backends that no failure was counted for: those required, and those in `failures`."""
    return tuple(name for name in dict.fromkeys((*required, *failures)) if not failures.get(name))
