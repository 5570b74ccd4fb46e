"""Go on if the suite fails after a row was judged: such a failure costs a page or a note, never the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .text import shorten


@contextmanager
def go_on(what: str, tell: Callable[[str], object]) -> Iterator[None]:
    """Tell in one line why a `with` block failed, and go on after it. No block may decide a verdict."""
    try:
        yield
    except BrokenPipeError:  # the reader had enough
        raise
    except Exception as error:
        tell(f"{what}: {describe_failure(error)}")


def describe_failure(error: Exception) -> str:
    """Say in a line what went wrong in the suite, or with a file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"the suite failed with {type(error).__name__}: {shorten(' '.join(str(error).split()), 200)}"
