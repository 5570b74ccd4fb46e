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
    "conformance.adapters.broken_process:DiesRatherThanRefuse": ("one-infer", "literal-lengths"),
}
"""The same for those that would take this process with them."""


def names() -> tuple[str, ...]:
    """Those that no run is without, as footers name them."""
    return tuple(backend.rpartition(":")[2] for backend in CANARIES)


def escaped(caught: Mapping[str, int]) -> tuple[str, ...]:
    """Those of which no failure was seen, whether they were driven or not."""
    return tuple(name for name in dict.fromkeys((*names(), *caught)) if not caught.get(name))
