"""The values that all rooms share: frozen, without input or output."""

from .backends import (
    EVERY,
    LIMITS,
    Adapter,
    Claims,
    Crashed,
    Identity,
    Isolated,
    Program,
    Rejected,
    RemoteError,
    TimedOut,
    Unsupported,
    covers,
)
from .calls import Call, Form, Kind, Meaning
from .cases import (
    LAYOUT_FAMILIES,
    LAYOUTS,
    STRIDED,
    STRIDED_FACETS,
    Case,
    Cases,
    Expected,
    Layout,
    Step,
    Suite,
    UnreadCase,
)
from .graphs import INTEGERS, Array, Declared, Graph, Node, Operand, Tensor
from .places import Malformed, Place, Problem
from .results import IDLE, Differing, Outcome, OutcomeKind, Result
from .rules import (
    AUTHORITIES,
    FINDING_KINDS,
    LEVELS,
    WEIGHTS,
    Authority,
    Commit,
    Document,
    Expression,
    Finding,
    Given,
    Level,
    NewerPage,
    Operation,
    Origin,
    Pointer,
    Prose,
    Rule,
    Spec,
    Weight,
)
from .verdicts import (
    BAD,
    BLAMES,
    ERROR,
    FAIL,
    NOT_CLAIMED,
    NOT_RUN,
    OBSERVED,
    PASS,
    RIGHT,
    VERDICTS,
    WAIVED,
    Blame,
    Verdict,
    Word,
    fails,
    worst,
)

__all__ = [
    "AUTHORITIES", "BAD", "BLAMES", "ERROR", "EVERY", "FAIL", "FINDING_KINDS", "IDLE", "INTEGERS", "LAYOUTS",
    "LAYOUT_FAMILIES", "LEVELS", "LIMITS", "NOT_CLAIMED", "NOT_RUN", "OBSERVED", "PASS", "RIGHT", "STRIDED",
    "STRIDED_FACETS", "VERDICTS", "WAIVED", "WEIGHTS", "Adapter", "Array", "Authority", "Blame", "Call", "Case",
    "Cases", "Claims", "Commit", "Crashed", "Declared", "Differing", "Document", "Expected", "Expression", "Finding",
    "Form", "Given", "Graph", "Identity", "Isolated", "Kind", "Layout", "Level", "Malformed", "Meaning", "NewerPage",
    "Node", "Operand", "Operation", "Origin", "Outcome", "OutcomeKind", "Place", "Pointer", "Problem", "Program",
    "Prose", "Rejected", "RemoteError", "Result", "Rule", "Spec", "Step", "Suite", "Tensor", "TimedOut", "UnreadCase",
    "Unsupported", "Verdict", "Weight", "Word", "covers", "fails", "worst",
]  # fmt: skip
