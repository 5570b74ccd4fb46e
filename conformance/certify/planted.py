"""Which bad backends are planted in every certified run."""

from __future__ import annotations

from collections.abc import Mapping

CANARIES: dict[str, tuple[str, ...]] = {
    "conformance.adapters.broken:AcceptsEverything": ("one-infer", "same-volume"),
    "conformance.adapters.broken:RefusesEverything": ("literal-lengths", "one-infer"),
    "conformance.adapters.broken:FlushesSubnormals": ("same-content", "literal-lengths"),
}
"""A planted backend → the rules whose rows it is driven over: some that it must fail, some that it may pass."""
IN_PROCESSES: dict[str, tuple[str, ...]] = {
    "conformance.adapters.broken.process:DiesRatherThanRefuse": ("one-infer", "literal-lengths"),
}
"""The same for those that would take this process with them."""


def planted_in(isolation: str) -> Mapping[str, tuple[str, ...]]:
    """The planted backends that every run of an isolation is held against."""
    return CANARIES if isolation == "none" else CANARIES | IN_PROCESSES


def names(isolation: str = "none") -> tuple[str, ...]:
    """The names of the planted backends of an isolation, as footers have them."""
    return tuple(backend.rpartition(":")[2] for backend in planted_in(isolation))


def escaped(caught: Mapping[str, int], isolation: str = "none") -> tuple[str, ...]:
    """The planted backends of which no failure was seen, whether they were driven or not."""
    return tuple(name for name in dict.fromkeys((*names(isolation), *caught)) if not caught.get(name))
