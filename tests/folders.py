"""Folders of a specification for tests: a copy of the bundled one to be spoilt, and a tiny one that loads fast."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from conformance.load.folders import spec_folder
from conformance.load.spec import SPEC_FILES, load_spec
from conformance.meaning.contract import contracts
from conformance.model import Malformed, Problem

TINY = {
    "sources": """documents:
  - id: only
    operation: StaticReshape
    title: A page
    edition: Edition 1
    licence: null
    file: page.txt
    sha256: "{digest}"
    lines: 9
    statements: 2
    prose: []
""".format(digest="0" * 64),
    "operations": """operations:
  - id: StaticReshape
    documents: [only]
    given: [attribute]
    types: [f32]
    shape_types: [s64]
    attributes:
      shape: {type: "s64[]", range: any, required: true}
    inputs:
      src: {index: 0, type: T, required: true}
    outputs:
      dst: {index: 0, type: T, required: true}
    names:
      only: {src: src, dst: dst, shape: shape}
    written:
      only:
        version: null
        shape_type: null
        shape_range: null
        shape_default: null
        special_zero_type: null
        special_zero_default: null
        first_index: null
        types: null
""",
    "rules": """rules:
  - id: one-infer
    must: At most one entry of shape is -1.
    stated:
      only: [3, No more than]
    requires: sum(d == -1 for d in shape) <= 1
""",
    "findings": """findings:
  - id: something-is-unsaid
    kind: silence
    about: Something is not said.
    at:
      only: [4, here]
    readings: [It is so.]
    follows: Nothing much.
    rules: [one-infer]
""",
}


def tiny(path: Path, **files: str) -> Path:
    """A folder `spec` with one rule in it; a file given by name stands in place of the tiny one."""
    folder = path / "spec"
    folder.mkdir(exist_ok=True)
    for name in SPEC_FILES:
        (folder / f"{name}.yaml").write_text(files.get(name, TINY[name]), encoding="utf-8", newline="")
    return folder


def bundled(path: Path) -> Path:
    """A copy of the bundled specification."""
    folder = path / "spec"
    folder.mkdir()
    for file in spec_folder().glob("*.yaml"):
        shutil.copy(file, folder)
    return folder


def one_rule(*lines: str) -> str:
    """rules.yaml with one rule that is stated on line 3; further lines come after its `stated`, from line 6 on."""
    head = TINY["rules"].splitlines()[:5]
    return "\n".join([*head, *(f"    {line}" for line in lines)]) + "\n"


def quoted(key: str, expression: str) -> str:
    """A key and an expression that needs quotes."""
    return f"{key}: {json.dumps(expression)}"


def problems_of(folder: Path) -> tuple[Problem, ...]:
    """What is wrong with a folder, its contracts included; nothing where all is well."""
    try:
        contracts(load_spec(folder))
    except Malformed as malformed:
        return malformed.problems
    return ()
