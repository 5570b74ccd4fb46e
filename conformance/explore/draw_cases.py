"""The cases of `plan/draw_cases.py` as a strategy of Hypothesis, which shrinks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from ..model import Case
from ..plan import draw_cases

T = TypeVar("T")


class _ByHypothesis:
    """Draws by Hypothesis."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def number(self, least: int, most: int) -> int:
        number: int = self._draw(st.integers(least, most))
        return number

    def choice(self, options: Sequence[T]) -> T:
        option: T = self._draw(st.sampled_from(options))
        return option


@st.composite
def cases(draw: Any, types: Sequence[str]) -> Case:
    """Draw a case, which does not say what its calls mean."""
    return draw_cases.draw_case(_ByHypothesis(draw), list(types))
