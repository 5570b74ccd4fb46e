"""The suite names no operation in code: operations come from spec/operations.yaml and from what a backend claims."""

import ast
from collections.abc import Iterator
from pathlib import Path

import conformance
from conformance.load.spec import load_spec

PACKAGE = Path(conformance.__file__).parent


OPERATIONS = tuple(load_spec().operations)
WORD = "Reshape"
"""Stands in the name of every operation; a module without it need not be parsed."""


def find_operation_names(text: str) -> Iterator[str]:
    """Yield the texts of a module that spell an operation; docstrings may."""
    nodes = [*ast.walk(ast.parse(text))]
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if not isinstance(node, ast.Constant) or node in docstrings:
            continue
        if isinstance(node.value, str) and any(operation in node.value for operation in OPERATIONS):
            yield node.value


def test_no_module_of_the_suite_spells_an_operation() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in ("tests", "adapters")]
    assert len(files) > 100
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    assert all(WORD in operation for operation in OPERATIONS)
    found = {path: [*find_operation_names(text)] for path, text in texts.items() if WORD in text}
    assert found
    assert {path.name: names for path, names in found.items() if names} == {}


def test_operations_are_found_in_texts_not_in_docstrings() -> None:
    assert [*find_operation_names('"""Like StaticReshape."""\nname = f"the {1} Reshape-1"')] == [" Reshape-1"]
