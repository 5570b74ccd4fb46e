"""A call of a reshape operation, and what it means in a document."""

from __future__ import annotations

from typing import Literal, NamedTuple

# ── what a call means ─────────────────────────────────────────────────────────────────────────────


class Form(NamedTuple):
    """All about a call that is not its src dims, shape and special_zero."""

    src_type: str
    dst_type: str
    shape_type: str
    shape_rank: int = 1
    special_zero_type: str = "bool"
    missing_attributes: tuple[str, ...] = ()
    missing_operands: tuple[str, ...] = ()
    extra_attributes: tuple[str, ...] = ()
    extra_operands: tuple[str, ...] = ()
    declared: tuple[int | None, ...] | None = None
    """Lengths that the graph states for dst beforehand; None where nothing is said."""

    @property
    def of_types(self) -> Form:
        """What holds of the nodes before the last too: what is declared, lacking or too much is so of the last."""
        return Form(self.src_type, self.src_type, self.shape_type, self.shape_rank)


class Call(NamedTuple):
    """One call of a reshape operation; `form` None stands for a well-formed node of listed types."""

    src: tuple[int, ...]
    shape: tuple[int, ...]
    special_zero: bool
    form: Form | None = None


Kind = Literal["legal", "illegal", "unspecified"]


class Meaning(NamedTuple):
    """What a call means in one document."""

    kind: Kind
    dst: tuple[int | None, ...] | None
    """Legal: the answer. Unspecified: what is known of it, None where free. Illegal: None."""
    rules: tuple[str, ...]
    """Illegal: the broken rules, and in a chain the silent ones of the nodes before. Unspecified: the silent ones."""
