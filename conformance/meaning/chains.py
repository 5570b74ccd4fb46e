"""The meaning of a chain of reshapes in a document: its contract, applied to one node after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from ..model import CallForm, Kind, Meaning
from .contract import Contract


@lru_cache(4096)  # the rows of a case, one for each type, ask for the same meanings
def meaning_of(
    contract: Contract,
    src: tuple[int, ...],
    shapes: tuple[tuple[int, ...], ...],
    special_zero: tuple[bool, ...],
    form: CallForm | None,
    shared_src: bool = False,
    own_node: int = -1,
) -> Meaning:
    """Return what a chain of reshapes means. An unspecified node excuses nothing in the nodes after it.

    `own_node`: the index of the node that has the form; the others have its types only.

    `shared_src`: each node takes src, so that it is a fork, and means what its last node does if no other forbids it.
    """
    if len(shapes) == 1:
        return contract.meaning(src, shapes[0], special_zero[0], form)
    forms = [form and form.of_types] * len(shapes)
    forms[own_node] = form
    if shared_src:
        return _decide_fork(contract, src, shapes, special_zero, forms)
    volume = prod(src)
    meaning = Meaning("legal", src, ())
    silent: tuple[str, ...] = ()  # with "" for an unspecified node without a silent rule
    beyond: tuple[str, ...] = ()
    for shape, zero, form_of_node in zip(shapes, special_zero, forms, strict=True):
        assert meaning.dst is not None
        copied = {i for i, d in enumerate(shape) if zero and d == 0 and i < len(meaning.dst) and meaning.dst[i] is None}
        meaning = contract.meaning(fill_unknown(meaning.dst, volume), shape, zero, form_of_node)
        if copied and (meaning.kind != "illegal" or set(meaning.rules) & contract.of_answer):
            return Meaning("unspecified", None, silent)  # dst depends on a length that is not known
        if meaning.kind == "illegal":
            return meaning._replace(rules=(*meaning.rules, *filter(None, silent)))
        if meaning.kind == "legal":
            beyond += tuple(rule for rule in meaning.rules if rule not in beyond)
        else:
            silent += tuple(rule for rule in meaning.rules or ("",) if rule not in silent)
    rules = tuple(rule for rule in silent if rule)
    kind: Kind = "unspecified" if silent else "legal"
    return meaning._replace(kind=kind, rules=rules if silent else beyond)


def _decide_fork(
    contract: Contract, src: tuple[int, ...], shapes: tuple[tuple[int, ...], ...], special_zero: tuple[bool, ...],
    forms: Sequence[CallForm | None],
) -> Meaning:  # fmt: skip
    """Return what several reshapes of one src mean: illegal if one of them is, else unspecified if one of them is."""
    meanings = [contract.meaning(src, *call) for call in zip(shapes, special_zero, forms, strict=True)]
    kinds = {meaning.kind for meaning in meanings}
    against = [meaning for meaning in meanings if meaning.kind != "legal"] or meanings
    rules = tuple(dict.fromkeys(rule for meaning in against for rule in meaning.rules))
    if "illegal" in kinds:
        return Meaning("illegal", None, rules)
    return meanings[-1]._replace(kind="unspecified" if "unspecified" in kinds else "legal", rules=rules)


def fill_unknown(dims: tuple[int | None, ...], volume: int) -> tuple[int, ...]:
    """Return dims of that volume that agree with the known lengths; the caller may not depend on the other lengths."""
    rest = prod(length for length in dims if length is not None)
    lengths = []
    for length in dims:
        if length is not None:
            lengths.append(length)
        else:
            lengths.append(volume // rest if rest else 1)
            rest = volume
    return tuple(lengths)
