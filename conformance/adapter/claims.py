"""Check the identity of an adapter and the names in its claims. model/backends.py says what these names exclude."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from ..model import EVERY, LAYOUT_FAMILIES, LAYOUTS, LIMITS, Adapter, Claims, Identity
from ..model.cases import CASE_KEYS, STEP_KEYS, families_of
from ..model.types import WIDTH
from ..system.exit_codes import CANNOT_START, CommandError
from ..system.text import find_near, quote, suggest
from .function import FunctionAdapter


class CannotStart(CommandError):
    """The adapter cannot be started; the message says what is wrong and what to do."""

    exit_code = CANNOT_START


NO_REJECTIONS = (BaseException, Exception, TypeError, AttributeError)
"""Exceptions that no adapter may name among its `rejections`, as bugs speak by them too."""


def check_members(adapter: Any, backend: str) -> Adapter:
    """Return the adapter if it has every member and claims only what exists; otherwise CannotStart."""
    for problem in _find_problems(adapter):
        raise CannotStart(f"{backend}: {problem}")
    return adapter  # type: ignore[no-any-return]


def check_description(identity: Any, claims: Any, backend: str) -> None:
    """Raise CannotStart if a backend's identity is malformed or it claims what does not exist."""
    for problem in chain(_find_problems_of_identity(identity), _find_problems_of_claims(claims)):
        raise CannotStart(f"{backend}: {problem}")


def resolve_claims(adapter: Adapter, operations: Collection[str]) -> Claims:
    """Return an adapter's claims with the suite's operations by name; CannotStart if it claims an unknown one."""
    claims = adapter.claims
    if claims.operations == EVERY:
        return claims._replace(operations=tuple(operations))
    for operation in claims.operations:
        if operation not in operations:
            known = ", ".join(operations)
            raise CannotStart(f"{adapter.identity.name}: claims an operation {operation!r}; there are {known}")
    return claims


# Each function below yields the problems in the order in which they are told. Nobody asks for a second one, so that
# a line may rely on those before it.


def _find_problems(adapter: Any) -> Iterator[str]:
    for member in ("identity", "claims", "compile"):
        if not (hasattr(type(adapter), member) or hasattr(adapter, member)):  # a property may raise AttributeError
            yield f"the adapter has no `{member}`; subclass FunctionAdapter or see adapters/README.md"
    if not callable(adapter.compile):
        yield "`compile` is not a method"
    if isinstance(adapter, FunctionAdapter) and type(adapter).reshape is FunctionAdapter.reshape:
        yield "the adapter does not define reshape(self, src, shape, special_zero)"
    yield from _find_problems_of_identity(adapter.identity)
    yield from _find_problems_of_claims(adapter.claims)
    if not isinstance(adapter, FunctionAdapter):
        return
    rejections: Any = adapter.rejections
    if not isinstance(rejections, tuple):
        yield "`rejections` is no tuple; write (ValueError,), with the comma"
    for kind in rejections:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            yield f"`rejections` holds {quote(kind)}, which is no exception class"
        if kind in NO_REJECTIONS:
            yield f"`rejections` names {kind.__name__}, by which bugs speak too; name the library's own"


_MAX_NAME_CHARACTERS, _MAX_DETAIL_CHARACTERS = 200, 2000
"""Characters of a backend's name, its version or a name in its claims; and of one detail, which may be a build line."""
_MAX_DETAILS, _MAX_CLAIMS = 100, 200
"""Details of an identity, and names in each list of the claims: all of it goes into every report."""


def _find_problems_of_identity(identity: Any) -> Iterator[str]:
    parts: tuple[Any, ...] = tuple(identity) if isinstance(identity, Identity) else ()
    if len(parts) != 3 or not all(isinstance(part, str) for part in parts[:2]) or not parts[0]:
        due = "give Identity(name, version), or a FunctionAdapter `name` and `version`: both text, and a name not empty"
        yield f"`identity` is {quote(identity)}; {due}"
    name, version, detail = parts
    for what, part in (("name", name), ("version", version)):
        if len(part) > _MAX_NAME_CHARACTERS:
            yield f"the {what} has {len(part):,} characters: {quote(part)}; give at most {_MAX_NAME_CHARACTERS}"
        if not part.isprintable():
            found = f"{part!r}, with a line break or a character that does not show"
            yield f"`identity` has {found}; give one line of plain text"
    if not isinstance(detail, tuple) or not all(isinstance(d, tuple) and [*map(type, d)] == [str, str] for d in detail):
        yield f"the detail of `identity` is {quote(detail)}; give pairs of text, a tuple each"
    if len(detail) > _MAX_DETAILS:
        yield f"the detail has {len(detail):,} entries; give at most {_MAX_DETAILS}"
    for key, value in detail:
        if len(key) > _MAX_NAME_CHARACTERS or len(value) > _MAX_DETAIL_CHARACTERS:
            what = f"the detail {quote(key)} has {len(value):,} characters: {quote(value)}"
            yield f"{what}; give a name of at most {_MAX_NAME_CHARACTERS} and at most {_MAX_DETAIL_CHARACTERS} for it"


def _find_problems_of_claims(claims: Any) -> Iterator[str]:
    if not isinstance(claims, Claims) or [*map(type, claims)] != [tuple, tuple, bool]:
        form = "Claims(operations, not_claimed, answers_special_zero): two tuples and a bool"
        yield f"`claims` is {quote(claims)}; give {form}"
    for field, names in zip(("operations", "not_claimed"), claims[:2], strict=True):
        if len(names) > _MAX_CLAIMS:
            yield f"{field!r} has {len(names):,} names; give at most {_MAX_CLAIMS}"
    everything: list[Any] = [*claims.operations, *claims.not_claimed]
    for name in everything:
        if not isinstance(name, str) or len(name) > _MAX_NAME_CHARACTERS:
            yield f"`claims` has {quote(name)}, where the name of an operation or a facet was due"
    for facet in claims.not_claimed:
        if facet not in FACETS:
            yield f"`not_claimed` has {describe_no_facet(facet)}"


def describe_no_facet(name: str) -> str:
    hint = suggest(_find_nearest_facets(name), f"there are {', '.join(FAMILIES)}")
    return f"{quote(name)}, which is no facet; {hint}"


def _find_nearest_facets(facet: str) -> list[str]:
    family, _, member = facet.partition(":")
    if family == "layout" and member in LAYOUTS:
        return [f"layout:{name}" for name in families_of(member)]
    if family in LIMITS and (size := re.fullmatch(r"(?:2\^)?([0-9]{1,9})", member)):
        return [f"{family}:{min(MEMBERS[family], key=lambda each: abs(int(each.removeprefix('2^')) - int(size[1])))}"]
    return find_near(facet, FACETS)


MAX_CASE_RANK = 65
"""The highest rank of a bundled case."""
FAMILIES = tuple(dict.fromkeys((
    "type", "shape-type", "runtime-shape", "unknown-src", "chain", "declared", "form", "rank", "length",
    *(key.facet.partition(":")[0] for key in (*STEP_KEYS, *CASE_KEYS) if key.facet),
)))  # fmt: skip
"""The families of facets; `layout:reversed` is a member of one."""
MEMBERS: Mapping[str, tuple[str, ...]] = {
    "type": tuple(WIDTH),
    "shape-type": tuple(WIDTH),
    "runtime-shape": ("changing-rank",),
    "unknown-src": ("rank",),
    "threads": ("one-program",),
    "layout": LAYOUT_FAMILIES,
    "rank": tuple(map(str, range(1, MAX_CASE_RANK + 1))),
    "length": ("2^31", "2^53"),
    "form": ("attributes", "attribute-types", "inputs", "outputs", "shape", "shape-rank", "types"),
}
"""Families that have members."""
FACETS = (*FAMILIES, *(f"{family}:{member}" for family, members in MEMBERS.items() for member in members))
"""Every name that `not_claimed` can have."""
