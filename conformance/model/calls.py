"""A call of a reshape operation, and what it means in a document."""

from __future__ import annotations

from typing import Literal, NamedTuple


class CallForm(NamedTuple):
    """The properties of a call other than the dims of src, shape and special_zero."""

    src_type: str
    dst_type: str
    shape_type: str
    shape_rank: int = 1
    special_zero_type: str = "bool"
    special_zero_is_exact: bool = True
    """Whether special_zero, of any type, is exactly 0 or 1."""
    missing_attributes: tuple[str, ...] = ()
    missing_operands: tuple[str, ...] = ()
    extra_attributes: tuple[str, ...] = ()
    extra_operands: tuple[str, ...] = ()
    declared: tuple[int | None, ...] | None = None
    """Dims that the graph declares for dst, None for an unknown length; None if it declares no dims."""
    dst_overlaps: bool = False
    """Whether a stride declared for dst is too small to pass all elements that the smaller strides reach."""

    @property
    def of_types(self) -> CallForm:
        """The form of the other nodes of a chain: only types and rank, because all else concerns one node."""
        return CallForm(self.src_type, self.src_type, self.shape_type, self.shape_rank)


class Call(NamedTuple):
    """One call of a reshape operation. `form` None: a well-formed node of listed types."""

    src: tuple[int, ...]
    shape: tuple[int, ...]
    special_zero: bool
    form: CallForm | None = None


Kind = Literal["legal", "illegal", "unspecified"]


class Meaning(NamedTuple):
    kind: Kind
    dst: tuple[int | None, ...] | None
    """Legal: the answer. Unspecified: the known lengths, None for a free one. Illegal: None."""
    rules: tuple[str, ...]
    """Illegal: the broken rules, and in a chain the silent rules of earlier nodes. Unspecified: the silent rules.
    Legal: the rules of capacity that allow a backend to reject the call."""
    max_length: int | None = None
    """Unspecified: the largest length that the answer may have; None if no rule sets one."""
    no_room: bool = False
    """Unspecified: whether the declared dst has two elements in one place, so that no answer can hold them all."""
