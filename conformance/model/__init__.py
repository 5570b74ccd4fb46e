"""The nouns of the suite: frozen values, no input or output."""

from .backends import (
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
)
from .calls import Call, Form, Kind, Meaning
from .cases import LAYOUTS, Case, Expected, Layout, Step, Suite
from .graphs import INTEGERS, Array, Declared, Graph, Node, Operand, Tensor
from .places import Malformed, Place, Problem
from .results import VERDICTS, Outcome, OutcomeKind, Result, Verdict
from .rules import Document, Expression, Finding, Given, Level, Operation, Pointer, Prose, Rule, Spec

__all__ = [
    "INTEGERS",
    "LAYOUTS",
    "VERDICTS",
    "Adapter",
    "Array",
    "Call",
    "Case",
    "Claims",
    "Crashed",
    "Declared",
    "Document",
    "Expected",
    "Expression",
    "Finding",
    "Form",
    "Given",
    "Graph",
    "Identity",
    "Isolated",
    "Kind",
    "Layout",
    "Level",
    "Malformed",
    "Meaning",
    "Node",
    "Operand",
    "Operation",
    "Outcome",
    "OutcomeKind",
    "Place",
    "Pointer",
    "Problem",
    "Program",
    "Prose",
    "Rejected",
    "RemoteError",
    "Result",
    "Rule",
    "Spec",
    "Step",
    "Suite",
    "Tensor",
    "TimedOut",
    "Unsupported",
    "Verdict",
]
