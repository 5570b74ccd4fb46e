"""The values that all rooms share: frozen, without input or output."""

# ruff: noqa: I001
from .backends import (
    EVERY, LIMITS, Adapter, AnswerNotRead, Claims, Crashed, Identity, Isolated, Program, Rejected, RemoteError,
    TimedOut, Unsupported, covers,
)  # fmt: skip
from .calls import Call, CallForm, Kind, Meaning
from .cases import (
    LAYOUT_FAMILIES, LAYOUTS, STRIDED, STRIDED_FACETS, Case, Cases, EarlierSuite, ExpectedResult, Layout, Step, Suite,
    UnreadCase,
)  # fmt: skip
from .graphs import INTEGERS, Array, Declared, Graph, Node, Operand, Tensor
from .places import Malformed, Place, Problem
from .results import NOT_CALLED, DifferingElements, Elements, Outcome, OutcomeKind, Result
from .rules import (
    AUTHORITIES, FINDING_KINDS, LEVELS, WEIGHTS, Authority, DocumentCommit, Document, Expression, Finding,
    KnownFault, Level, NewerPage, Operation, DocumentOrigin, PlainCall, Pointer, Prose, Rule, ShapePassedAs, Spec,
)  # fmt: skip
from .verdicts import (
    BAD, BLAMES, ERROR, FAIL, NOT_CLAIMED, NOT_RUN, OBSERVED, PASS, RIGHT, VERDICTS, WAIVED, Blame, StandingName,
    Verdict, fails, worst,
)  # fmt: skip
