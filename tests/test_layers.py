"""A module imports only rooms below its own, there are no circles, and none names an operation of the specification."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import conformance
from conformance.load.spec import load_spec

PACKAGE = Path(conformance.__file__).parent
LADDER = (
    ("system",),
    ("model",),
    ("load", "meaning", "adapter"),
    ("plan",),
    ("draw",),
    ("run",),
    ("isolate",),
    ("evidence", "adapter_check", "selfcheck"),
    ("verdict", "shrink"),
    ("runner", "sweep"),
    ("report",),
    ("certificate",),
    ("graphs",),
    ("exchange",),
    ("site",),
    ("cli",),
    ("api", "pytest_plugin"),
)
"""Rooms, the lowest first; rooms of one line do not import one another."""
RANK = {room: rank for rank, rooms in enumerate(LADDER) for room in rooms}
FACE = ("__init__", "__main__", "adapters")
"""Modules beside the rooms: the public face, the command, and the way to adapters/."""
STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
"""The nodes that may contain an import."""
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in PACKAGE.rglob("*.py")
    if path.relative_to(PACKAGE).parts[0] not in ("adapters", "cases", "spec")
}


@cache
def imports_of(module: str, text: str) -> frozenset[str]:
    """Every module or name of the suite that a module imports, also inside functions; TYPE_CHECKING apart."""
    return frozenset(_imports_of(module, text))


def _imports_of(module: str, text: str) -> Iterator[str]:
    here = ["conformance", *module.split(".")]
    nodes: list[ast.AST] = [ast.parse(text)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in map(last_name_of, ast.walk(node.test)):
            nodes += node.orelse
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("conformance."))
        elif isinstance(node, ast.ImportFrom):
            source = ".".join([*(here[: -node.level] if node.level else []), *filter(None, [node.module])])
            if source.partition(".")[0] == "conformance":
                yield from (f"{source}.{alias.name}".partition(".")[2] for alias in node.names)
        else:
            nodes += (child for child in ast.iter_child_nodes(node) if isinstance(child, STATEMENTS))


def last_name_of(node: ast.AST) -> str | None:
    """The last name of a reference to an object."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def list_misplaced(module: str, text: str) -> list[str]:
    """The imports of a module that climb the ladder or leave it."""
    room = module.partition(".")[0]
    rooms = {name: name.partition(".")[0] for name in imports_of(module, text)}
    return sorted(
        name
        for name, other in rooms.items()
        if other != room and not (other in RANK and RANK[other] < RANK[room]) and name != "__version__"
    )


@pytest.mark.parametrize("room", RANK)
def test_a_module_imports_only_rooms_below_its_own(room: str) -> None:
    texts = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items() if name.split(".")[0] == room}
    assert texts
    assert {name: wrong for name, text in texts.items() if (wrong := list_misplaced(name, text))} == {}


def test_every_module_is_in_a_room() -> None:
    assert {name.partition(".")[0] for name in MODULES} - {*FACE} == RANK.keys()


def test_no_modules_import_one_another_in_a_circle() -> None:
    graph = {
        name.removesuffix(".__init__"): {
            part
            for imported in imports_of(name, path.read_text(encoding="utf-8"))
            for part in (imported, imported.rpartition(".")[0])
            if part in MODULES and part != name
        }
        for name, path in MODULES.items()
        if name.partition(".")[0] in RANK
    }
    TopologicalSorter(graph).prepare()  # raises CycleError


# ── operations come from spec/operations.yaml and from what a backend claims ──────────────────────
OPERATIONS = tuple(load_spec().operations)
WORD = "Reshape"
"""Stands in the name of every operation; a module without it need not be parsed."""


def find_operation_names(text: str) -> Iterator[str]:
    """Return the texts of a module that spell an operation; docstrings may."""
    nodes = [*ast.walk(ast.parse(text))]
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and node not in docstrings]
    return (text for text in texts if isinstance(text, str) and any(operation in text for operation in OPERATIONS))


def test_no_module_of_the_suite_spells_an_operation() -> None:
    assert all(WORD in operation for operation in OPERATIONS)
    texts = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}
    found = {name: [*find_operation_names(text)] for name, text in texts.items() if WORD in text}
    assert found
    assert {name: names for name, names in found.items() if names} == {}


def test_operations_are_found_in_texts_not_in_docstrings() -> None:
    assert [*find_operation_names('"""Like StaticReshape."""\nname = f"the {1} Reshape-1"')] == [" Reshape-1"]
