"""The digest of an adapter covers its file, what that imports from beside it, and the words of a command."""

import hashlib
import sys
from pathlib import Path

import pytest

from conformance.adapter import digest_of_adapter
from conformance.system.files import sha256_of

IMPORTED = {
    "mine.py": "import helper, deep.down\nfrom more import thing\nfrom deep import other\nfrom . import beside\n",
    "helper.py": "from .that_is_not_there import nothing\n",
    "beside.py": "def later():\n    from . import (\n        mine,\n        hidden,\n    )\n",
    "hidden.py": "",
    "more/__init__.py": "from .inner import thing\n",
    "more/inner.py": "thing = 1\n",
    "deep/down.py": "",  # a package needs no __init__.py
    "deep/other.py": "",
}


def test_a_change_of_any_imported_file_changes_the_digest(tmp_path: Path) -> None:
    for name, text in IMPORTED.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    digests = [digest_of_adapter(f"{tmp_path / 'mine.py'}:Mine")]
    for name, text in IMPORTED.items():
        (tmp_path / name).write_text(f"{text}# other\n")
        digests.append(digest_of_adapter(f"{tmp_path / 'mine.py'}:Mine"))
    assert len(set(digests)) == 1 + len(IMPORTED)


def test_a_module_is_pinned_with_what_it_imports_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "packed/__init__.py": "", "packed/mine.py": "from packed.help import a\nimport other\n",
        "packed/help/__init__.py": "from packed import last\n", "packed/last.py": "", "other.py": "",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    digests = [digest_of_adapter("packed.mine:Mine")]
    for name in ("packed/mine.py", "packed/help/__init__.py", "packed/last.py", "other.py"):
        (tmp_path / name).write_text(f"{files[name]}# other\n")
        digests.append(digest_of_adapter("packed.mine:Mine"))
    assert len(set(digests[:-1])) == 4
    assert digests[-1] == digests[-2], "another package is no part of the adapter"


def test_one_file_is_pinned_by_its_digest_and_several_by_theirs(tmp_path: Path) -> None:
    one, helper = tmp_path / "one.py", tmp_path / "helper.py"
    one.write_text("import numpy\n")
    for argument in ("--fast", 300 * "x"):  # too long for the name of a file
        assert digest_of_adapter(f"{one}:It") == digest_of_adapter(f"cmd:{one} {argument}") == sha256_of(one)
    one.write_text("import helper\n")
    helper.write_text("")
    lines = "".join(f"{sha256_of(path)}  {path.name}\n" for path in (one, helper))
    assert digest_of_adapter(f"{one}:It") == hashlib.sha256(lines.encode()).hexdigest()


def test_two_adapters_have_two_digests(tmp_path: Path) -> None:
    """Where one of their files ends and the next begins makes a difference, and so do arguments of a program."""
    digests = set()
    for name, end in (("one", "more = 1\n"), ("two", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(f"import helper\n{end}")
        (tmp_path / name / "helper.py").write_text("more = 1\n" if not end else "")
        digests.add(digest_of_adapter(f"{tmp_path / name / 'mine.py'}:Mine"))
        (tmp_path / "prog.mjs").write_text(end)
        digests.add(digest_of_adapter(f"cmd:{sys.executable} {tmp_path / 'prog.mjs'}"))
    assert len(digests) == 4
