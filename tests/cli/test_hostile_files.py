"""A file or a command line that tries to become code in what is made from it."""

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.adapter import load_adapter
from conformance.adapters.onednn_api import PROTOTYPES
from conformance.load.cases import load_cases
from conformance.load.spec import load_spec
from conformance.model import Malformed
from conformance.shrink.write_case import write_case_text

from ..builders import Cli, spec, write_suite, write_tiny_spec
from .hostile import (
    BAD,
    FILE,
    IN_PYTHON,
    NAMES,
    OF_EACH_LIBRARY,
    TEXTS,
    WRITERS,
    quote,
    row_of,
    shape,
    text,
    values,
)


def case_file(folder: Path, **changed: str) -> list[str]:
    """Write one case with these keys, and return the option that names its suite."""
    keys = {"id": "a-case", "rule": "extra-attributes", "src": "f32[2, 3]", "shape": "[6]", "special_zero": "false"}
    keys |= {"attributes": "{axis: {type: s64, values: 1}}", "expect": "unspecified"}
    keys |= changed
    inside = "\n".join(f"    {key}: {value}" for key, value in keys.items() if value)
    return ["--suite", str(write_suite(folder, f"about: One.\ncases:\n  -\n{inside}\n"))]


@pytest.mark.parametrize(
    "backend", [pytest.param(each, marks=[pytest.mark.slow] * bool(number)) for number, each in enumerate(WRITERS)]
)
def test_no_text_of_a_file_ends_the_comment_at_the_head(backend: str, tmp_path: Path, cli: Cli) -> None:
    def program(value: str) -> str:
        words = case_file(tmp_path, attributes=f"{{axis: {{type: string, values: {quote(value)}}}}}")
        out = cli("explain", "a-case", "--backend", backend, *words).expect(0, lines=0).out
        assert out.isascii()
        return out

    plain = program("plain")
    due = shape(plain)
    assert "run it only if you trust" in plain
    for each in (*TEXTS, *(f"{'x' * number}*/ \\" for number in range(60, 110, 7))):
        whole = program(each)
        assert shape(whole) == due, each
        assert each.encode() in values(whole), each
        assert "on " + backend in (ast.get_docstring(ast.parse(whole)) or "").partition("\n")[0]


STUBS = """
#include <stdio.h>
int dnnl_graph_op_set_attr_str(void *op, int id, const char *text, size_t length) {
    for (size_t k = 0; k < length; k++) printf("%02x", (unsigned char)text[k]);
    puts(" is what it was told");
    fflush(stdout);
    return 0;
}
int dnnl_graph_graph_finalize(void *graph) { return 1; }
const char *dnnl_status2str(int status) { return "none"; }
const char *dnnl_cpu_isa2str(int status) { return "none"; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with the functions of oneDNN, which tells the text of an attribute and then refuses the graph."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("library")
    rest = {*PROTOTYPES, "dnnl_get_effective_cpu_isa"} - set(re.findall(r"\b(dnnl_\w+)\(", STUBS))
    (folder / "stubs.c").write_text(STUBS + "".join(f"int {each}() {{ return 0; }}\n" for each in sorted(rest)))
    made = folder / "libdnnl.so"
    subprocess.run(["cc", "-w", "-shared", "-fPIC", folder / "stubs.c", "-o", made], check=True, timeout=60)
    return made


DRIVER = """
import runpy, sys
for path in sys.argv[1:]:
    try:
        runpy.run_path(path)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
"""
"""Runs one script after another, whatever ends each."""
TO_RUN = (*TEXTS[:8], *TEXTS[-4:], *TEXTS[17:26])


def test_a_script_hands_on_the_text_and_does_nothing_else(library: Path, tmp_path: Path, cli: Cli) -> None:
    paths = []
    for number, each in enumerate(TO_RUN):
        words = case_file(tmp_path, attributes=f"{{axis: {{type: string, values: {quote(each)}}}}}")
        out = cli("explain", "a-case", "--backend", "onednn", *words).expect(0).out
        paths.append(tmp_path / f"{number}.py")
        paths[-1].write_text(out, encoding="utf-8")
    command = [sys.executable, "-I", "-S", "-c", DRIVER, *map(str, paths)]
    env = {"ONEDNN_LIBRARY": str(library)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=60, check=False)
    assert not (tmp_path / FILE).exists()
    told = re.findall(rb"([0-9a-f]*) is what it was told", done.stdout)
    assert told == [each.encode().hex().encode() for each in TO_RUN]


@pytest.mark.parametrize("backend", OF_EACH_LIBRARY)
def test_a_command_in_a_case_is_not_run(backend: str, tmp_path: Path, cli: Cli) -> None:
    run = (
        "import runpy, sys\nfrom unittest.mock import MagicMock\n"
        "for name in sys.argv[2:]: sys.modules[name] = MagicMock()\n"
        "runpy.run_path(sys.argv[1])\n"
    )
    attacks = (
        f"{{axis: {{type: s64, values: {quote(IN_PYTHON)}}}}}",
        f"{{shape: {{type: 's64[]', values: [{quote(IN_PYTHON)}]}}}}",
        f"{{special_zero: {{type: bool, values: {quote(IN_PYTHON)}}}}}",
        f"{{{quote(f'x={IN_PYTHON}, y')}: {{type: s64, values: 1}}}}",
        f"{{axis: {{type: {quote(IN_PYTHON)}, values: 1}}}}",
    )
    for attack in attacks:
        code, out, err = cli("explain", "a-case", "--backend", backend, *case_file(tmp_path, attributes=attack))
        if code == 0:
            (tmp_path / "script.py").write_text(out, encoding="utf-8")
            modules = sorted({"onnx", "openvino", *re.findall(r"^(?:import|from) ([\w.]+)", out, re.MULTILINE)})
            parents = [name.rpartition(".")[0] for name in modules if "." in name]
            ours = (*sys.stdlib_module_names, "numpy")
            foreign = [name for name in (*parents, *modules) if name.partition(".")[0] not in ours]
            command = [sys.executable, "-c", run, "script.py", *foreign]
            subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
            assert not (tmp_path / FILE).exists(), out
        assert code == 2, attack
        assert re.search(r"few0\.yaml:\d+: ", err), err
        assert err.count("\n") == 1, err


@pytest.mark.parametrize(
    "backend",
    [f'torch@") + {IN_PYTHON} + ("', "torch@a\nb", "torch@", "onnxruntime@cuda", "torch-mkldnn@cuda", "litert@x"],
)
def test_a_backend_or_device_that_there_is_not_makes_no_script(backend: str, tmp_path: Path, cli: Cli) -> None:
    code, out, err = cli("explain", "a-case", "--backend", backend, *case_file(tmp_path, attributes=""))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("key", "value"), BAD)
def test_a_name_that_is_none_is_refused_with_its_line(key: str, value: str, tmp_path: Path, cli: Cli) -> None:
    words = case_file(tmp_path, **{key: value})
    err = cli("explain", "a-case", *words).expect(2).err
    lines = (tmp_path / "cases" / "few0.yaml").read_text(encoding="utf-8").splitlines()
    number = next(number for number, line in enumerate(lines, 1) if line.startswith(f"    {key}:"))
    assert re.search(rf"few0\.yaml:{number}: ", err), err
    assert all("few0.yaml:" in line for line in err.splitlines()), err


@pytest.mark.parametrize(
    "name", ["a b.yaml", "a;b.yaml", "x\n::error::y.yaml", "::error::y.yaml", "\x1b[2J.yaml", "é.yaml", "$(id).yaml",
             "a'b.yaml"]
)  # fmt: skip
def test_a_case_file_of_another_name_is_an_error(name: str, tmp_path: Path, cli: Cli) -> None:
    words = case_file(tmp_path)
    (tmp_path / "cases" / "few0.yaml").rename(tmp_path / "cases" / name)
    err = cli("list", "cases", *words).expect(2, err=[repr(name), "rename the file"]).err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", [name for name in NAMES if name])
@pytest.mark.parametrize(
    ("file", "old"),
    [
        ("sources", "id: only"), ("sources", "operation: StaticReshape"), ("sources", "file: page.txt"),
        ("operations", "id: StaticReshape"), ("operations", "types: [f32"), ("rules", "id: one-infer"),
        ("findings", "id: "),
    ],
)  # fmt: skip
def test_a_name_in_a_specification_that_is_none_is_an_error(name: str, file: str, old: str, tmp_path: Path) -> None:
    folder = write_tiny_spec(tmp_path)
    path = folder / f"{file}.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if old in line)
    before, key, after = lines[at].partition(old)
    word = key.split()[-1].lstrip("[") if key.strip()[-1] != ":" else ""
    lines[at] = before + key.removesuffix(word) + quote(name) + (after if word else "\n")
    path.write_text("".join(lines), encoding="utf-8")
    with pytest.raises(Malformed) as malformed:
        load_spec(folder)
    assert any(problem.place.line == at + 1 for problem in malformed.value.problems), malformed.value
    assert all(str(problem).isprintable() for problem in malformed.value.problems)


def test_the_json_of_a_script_is_the_script(tmp_path: Path, cli: Cli) -> None:
    words = case_file(tmp_path, attributes=f"{{axis: {{type: string, values: {quote(TEXTS[-1])}}}}}")
    _, plain, _ = cli("explain", "a-case", "--backend", "onednn", *words)
    _, out, _ = cli("explain", "a-case", "--backend", "onednn", "--json", *words)
    assert json.loads(out)["text"] == plain


PASTED = """
from conformance.adapter import FunctionAdapter


class Mine(FunctionAdapter):
    name, version = "mine", "1"

    def reshape(self, src, shape, special_zero):
        raise ValueError("no" + chr(10) + "  - id: pasted" + chr(10) + "    rule: one-infer" + chr(13) + chr(0x2028))
"""


def test_a_message_of_a_backend_adds_no_case_to_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PASTED, encoding="utf-8")
    few = "--isolation none --rank 1 --max-dim 1 --type f32 --operation StaticReshape"
    out = cli("sweep", "mine.py:Mine", *few.split()).expect(1).out
    assert "  - id: rejected-a-legal-call" in out
    assert not re.search(r"^ *- id: pasted", out, re.MULTILINE)


def test_a_text_in_a_case_that_was_found_stays_a_text(tmp_path: Path) -> None:
    for value in TEXTS[:-9]:
        row = row_of({"axis": text(value)})
        written = write_case_text(row, "extra-attributes", "a found case")
        (tmp_path / "a.yaml").write_text(f"about: One.\ncases:\n{written}", encoding="utf-8")
        (case,) = load_cases(tmp_path, spec()).values()
        assert case.attributes == row.case.attributes, value


@pytest.mark.parametrize("name", ["none", "None", "true", "FALSE".title(), "function-adapter", "array"])
def test_python_imports_a_new_adapter_of_any_name(
    cli: Cli, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check = shlex.split(cli("new-adapter", name, "--json", "--out", "mine.py").expect(0).data["next"][0])
    assert load_adapter(check[-1]).identity.name == name


@pytest.mark.parametrize("name", [*NAMES, '"""', "a\n", "a\\", "é", "a\u2028"])
@pytest.mark.parametrize("language", ["python", "c", "cpp", "javascript", "rust"])
def test_a_name_that_would_be_code_makes_no_adapter(
    cli: Cli, name: str, language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("new-adapter", name, "--lang", language).expect(2, lines=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("language", ["python", "rust"])
def test_an_adapter_on_a_full_disk_leaves_nothing(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    def open_on_a_full_disk(path: Path, mode: str = "r", *_: object, **__: object) -> object:
        if mode == "r":
            return open(path, mode, encoding="utf-8")
        path.touch()
        return open(path if path.name == "Cargo.toml" else "/dev/full", "w")

    monkeypatch.setattr(Path, "open", open_on_a_full_disk)
    monkeypatch.chdir(tmp_path)
    cli("new-adapter", "mine", "--lang", language).expect(2, err="No space left on device")
    assert not [*tmp_path.iterdir()]
