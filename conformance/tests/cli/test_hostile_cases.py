"""A case, a specification or a command line that tries to become code in a script that is made from it."""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from conformance.adapter import load_adapter
from conformance.adapters.repro import onednn_c
from conformance.explore.write_case import case_text
from conformance.load.cases import load_cases, load_suite
from conformance.load.folders import spec_folder
from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.model import Case, Declared, Expected, Malformed, Node, Operand, Place, Step, Unsupported
from conformance.plan.rows import Row, rows_of
from conformance.plan.steps import RowStep

from ..adapters.test_repro import BACKENDS, writer
from ..small import Cli

CC = shutil.which("cc")
FILE = "was-run"
IN_PYTHON = f"__import__('os').system('touch {FILE}')"
IN_C = f'", 1), system("touch {FILE}"), ("'
TEXTS = (
    "", "0", '"', "'", "\\", '\\"', "\\\\'", '"""', "'''", "*/", "/*", "*/ int x; /*", "//", "??/", '??/"', "??",
    "%s{}{0}",
    "\n", "\r", "\r\n", "*\\\n/ int x; /*", "\x00", "\x0b\x0c\x1c\x85", "\u2028\u2029", "\u202e\u2066", "\x7f\x80\xff",
    "é 漢 \N{GRINNING FACE}", "laid_out(", "#define x", "x" * 5000, f"'); {IN_PYTHON}; ('", f"\\'); {IN_PYTHON}; (\\'",
    f'"""\n{IN_PYTHON}\n"""', f"\n{IN_PYTHON}\n", IN_C, f"\\{IN_C}", f"*/ int f(void) {{ {IN_C} }} /*",
)  # fmt: skip
"""Texts that an attribute may have, each of which would end a literal, a comment or a line if it were not escaped."""
NUMBERS = (0, -1, 255, 256, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 63, 10**39, 10**400, True)
FLOATS = (0.0, -0.0, 0.5, 5e-324, 1e38, -1e39, 1e308, math.inf, -math.inf, math.nan)
NAMES = ("a b", 'x"', "x'y", "x\n", "x;y", "é", "$(id)", "`id`", "../x", "a=1", "", "*/", f"axis={IN_PYTHON}")
"""What is no name."""


class Script(NamedTuple):
    """What makes one kind of scripts: a backend, and whether they are C."""

    backend: str
    in_c: bool = False

    def of(self, row: Row) -> str:
        text: str = onednn_c.write_script(row) if self.in_c else writer(self.backend).write_script(row, self.backend)
        return text

    @property
    def words(self) -> list[str]:
        return ["--backend", self.backend, *(["--c"] if self.in_c else [])]


SCRIPTS = (*map(Script, BACKENDS), Script("onednn", in_c=True))
NODES = tuple(each for each in SCRIPTS if re.match("onnx|openvino|onednn|tract|tvm", each.backend))
"""Those that say the attributes of a node; the others are function calls."""


def named(script: Script) -> str:
    return script.backend + ("-c" if script.in_c else "")


WRITERS = tuple(each for each in NODES if each.backend in ("onnxruntime", "openvino", "onednn"))
"""One of each module that writes such scripts."""
every_script = pytest.mark.parametrize("script", SCRIPTS, ids=named)
every_node = pytest.mark.parametrize("script", NODES, ids=named)


@cache
def spec() -> Any:
    return load_spec()


def row_of(attributes: Mapping[str, Operand | None], given: str = "attribute", bits: str | None = None) -> Row:
    """A row of a plain case with these attributes, made without the loader."""
    step = Step("f32", (2, 3), ((6,),), (False,), {"*": Expected("unspecified")}, bits=bits)
    case = Case("a-case", "cases/a.yaml", "extra-attributes", (step,), Place("cases/a.yaml", 1), attributes=attributes)
    return next(row for row in rows_of([case], spec(), contracts(spec())) if row.given == given)


def text(value: object) -> Operand:
    return Operand("string", (), (value,))


# ── what a script is made of ──────────────────────────────────────────────────────────────────────
class Shape(ast.NodeTransformer):
    """Each literal becomes its type: what is left is what the script does."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Name("number" if isinstance(node.value, int | float) else type(node.value).__name__)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        visited = self.generic_visit(node)
        return node.operand if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Name) else visited


TOKEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<number>\d[\w.+]*(?:(?<=e)-\d+)?)|(?P<name>\w+)|(?P<other>\S)',
    re.DOTALL,
)


def tokens(program: str) -> list[tuple[str, str]]:
    """The tokens of a C program, as a compiler with trigraphs sees it."""
    program = program.replace("??/", "\\").replace("\\\n", "")
    return [(match.lastgroup or "", match[0]) for match in TOKEN.finditer(program) if match.lastgroup]


def shape(script: Script, program: str) -> object:
    """What a program does, apart from the values of its literals."""
    if script.in_c:
        plain = re.sub(r"INT64_C\((-?\d+)\)", r"\1", program).replace("INT64_MIN}", "0}")
        plain = re.sub(r"(?<=[{ ])-(?=\d)", "", plain)
        return [kind if kind in ("string", "number") else token for kind, token in tokens(plain)]
    return ast.dump(Shape().visit(ast.parse(program)))


def bytes_of(literal: str) -> bytes:
    """The bytes of a C string of plain characters and octal escapes."""
    assert re.fullmatch(r'"(?:[ -!#->@-\[\]-~]|\?(?!\?)|\\[0-7]{3})*"', literal), literal
    return re.sub(rb"\\(\d{3})", lambda octal: bytes([int(octal[1], 8)]), literal[1:-1].encode())


def values(script: Script, program: str) -> list[object]:
    """The values of all literals."""
    if script.in_c:
        return [bytes_of(token) for kind, token in tokens(program) if kind == "string" and r"\n" not in token]
    constants = [node.value for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Constant)]
    return [each.encode() if isinstance(each, str) else each for each in constants]


def compiled(program: str) -> None:
    """Fails where a C compiler finds anything to say."""
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-S", "-o", os.devnull, "-x", "c", "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr[:2000]


# ── made without the loader ───────────────────────────────────────────────────────────────────────
@every_node
@pytest.mark.parametrize("place", ["axis", "shape", "special_zero"])
def test_a_text_stays_a_literal_of_that_very_text(script: Script, place: str) -> None:
    try:
        plain = script.of(row_of({place: text("plain")}))
    except Unsupported:
        with pytest.raises(Unsupported):
            script.of(row_of({place: text(IN_PYTHON)}))
        return
    for each in TEXTS:
        program = script.of(row_of({place: text(each)}))
        assert program.isascii()
        assert shape(script, program) == shape(script, plain), each
        assert each.encode() in values(script, program), each


@pytest.mark.skipif(CC is None, reason="needs a C compiler")
def test_a_c_program_with_any_text_compiles() -> None:
    program = onednn_c.write_script(row_of({f"a{number}": text(each) for number, each in enumerate(TEXTS)}))
    compiled(program)


@pytest.mark.skipif(CC is None, reason="needs a C compiler")
@pytest.mark.parametrize("bits", [None, "edges", "1 2 3 4 5 6"])
def test_a_c_program_with_any_elements_has_no_function_that_it_does_not_use(bits: str | None) -> None:
    compiled(onednn_c.write_script(row_of({}, bits=bits)))


@every_node
@pytest.mark.parametrize("type_", ["s64", "s32", "bool", "f32", "string"])
def test_a_number_is_that_number_or_not_written_at_all(script: Script, type_: str) -> None:
    programs = []
    for value in (*NUMBERS, *FLOATS):
        with_value = {"axis": Operand(type_, (), (value,))}
        try:
            programs.append(script.of(row_of(with_value)))
        except Unsupported as unsupported:
            assert unsupported.facet  # noqa: PT017 - a script is as good
    if type_ in ("s64", "string") or not script.backend.startswith("onednn"):
        assert programs
    assert len({str(shape(script, each)) for each in programs}) <= 1
    if script.in_c and CC:
        for each in programs:
            compiled(each)


@every_node
@pytest.mark.parametrize("type_", ["s64", "bool", "f32", "string"])
def test_an_attribute_without_a_value_is_written_or_refused(script: Script, type_: str) -> None:
    try:
        program = script.of(row_of({"axis": Operand(type_, (0,), ())}))
    except Unsupported:
        assert not script.backend.startswith("onednn"), "an empty list is something that oneDNN can be told"
    else:
        assert shape(script, program)
        if script.in_c and CC:
            compiled(program)


@every_node
def test_half_of_a_surrogate_pair_is_no_text(script: Script) -> None:
    with pytest.raises(Unsupported):
        script.of(row_of({"axis": text("\udc80")}))


def hostile_tasks(task: RowStep) -> Iterator[tuple[str, RowStep]]:
    """The task with one value after another that is code where a number or a name should be."""
    graph, source, code = task.graph, task.source, cast("Any", IN_PYTHON)
    (node,) = graph.nodes
    assert node.shape is not None
    fields: tuple[tuple[str, Any], ...] = (
        ("type", code), ("dims", (code,)), ("dims", (-1,)), ("dims", (1 << 70,)), ("layout", code),
        ("bits", code), ("bits", ""), ("bits", "zz"), ("bits", "-1"), ("bits", "0123456789"), ("start", code),
    )  # fmt: skip
    for field, value in fields:
        yield f"source.{field}", dataclasses.replace(task, source=source._replace(**{field: value}))
    for declared in (Declared(code, None), Declared("f32", (code,)), Declared("f32", (2,), (code,))):
        yield "graph.src", dataclasses.replace(task, graph=graph._replace(src=declared))
        yield "graph.result", with_node(task, node._replace(result=declared))
    for operand in (
        Operand(code, (1,), (6,)), Operand("s64", (code,), (6,)), Operand("s64", (1,), (code,)),
        Operand("s64", (1,), (6.5,)), Operand("f32", (1,), ("6",)), Operand("bool", (1,), ("6",)),
    ):  # fmt: skip
        yield f"shape {operand}", with_node(task, node._replace(shape=operand))
        yield f"special_zero {operand}", with_node(task, node._replace(special_zero=operand))
        yield f"axis {operand}", with_node(task, node._replace(attributes=(("axis", operand),)))
    for name in NAMES:
        yield f"attribute {name!r}", with_node(task, node._replace(attributes=((name, Operand("s64", (), (1,))),)))
    for field in ("inputs", "outputs"):
        yield field, with_node(task, node._replace(**{field: code}))
    for arriving in ((code, (1,), (6,)), ("s64", (code,), (6,)), ("s64", (1,), (code,))):
        yield f"arriving {arriving}", dataclasses.replace(task, shapes=(arriving,))


def with_node(task: RowStep, node: Node) -> RowStep:
    return dataclasses.replace(task, graph=task.graph._replace(nodes=(node,)))


@every_script
def test_code_in_the_place_of_a_number_or_a_name_makes_no_script(script: Script) -> None:
    row = row_of({})
    assert script.of(row)
    for what, task in hostile_tasks(row.steps[0]):
        hostile = copy.copy(row)
        hostile.__dict__["steps"] = (task,)
        try:
            program = script.of(hostile)
        except Unsupported as unsupported:
            assert IN_PYTHON not in unsupported.facet, what  # noqa: PT017 - that it is raised is asserted too
        else:
            pytest.fail(f"{what}: {program[-500:]}")


@pytest.mark.parametrize("backend", ["torch", "torch-raw", "jax", "jax-jit", "cupy"])
def test_a_device_stays_a_literal(backend: str) -> None:
    row = row_of({})
    plain = writer(backend).write_script(row, f"{backend}@cuda")
    hostile = writer(backend).write_script(row, f'{backend}@") + {IN_PYTHON} + ("')
    script = Script(backend)
    assert shape(script, hostile) == shape(script, plain)


# ── through files and the command line ────────────────────────────────────────────────────────────
def quoted(value: str) -> str:
    """YAML in double quotes, in which every character that is no plain one is escaped."""
    plain = "".join(c if c.isprintable() and ord(c) < 1 << 16 else f"\\U{ord(c):08x}" for c in escaped(value))
    return f'"{plain}"'


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def case_file(folder: Path, **changed: str) -> list[str]:
    """Writes one case whose keys are these, and says the options that name its folder."""
    keys = {"id": "a-case", "rule": "extra-attributes", "src": "f32[2, 3]", "shape": "[6]", "special_zero": "false"}
    keys |= {"attributes": "{axis: {type: s64, values: 1}}", "expect": "unspecified"}
    keys |= changed
    folder.mkdir(exist_ok=True)
    inside = "\n".join(f"    {key}: {value}" for key, value in keys.items() if value)
    (folder / "a.yaml").write_text(f"about: One.\ncases:\n  -\n{inside}\n", encoding="utf-8")
    return ["--cases", str(folder)]


@pytest.mark.parametrize("script", WRITERS, ids=named)
def test_no_text_of_a_file_ends_the_comment_at_the_head(script: Script, tmp_path: Path, cli: Cli) -> None:
    def program(value: str) -> str:
        words = case_file(tmp_path, attributes=f"{{axis: {{type: string, values: {quoted(value)}}}}}")
        out = cli("explain", "a-case", *script.words, *words).expect(0, lines=0).out
        assert out.isascii()
        return out

    plain = program("plain")
    assert "run it only if you trust" in plain
    for each in (*TEXTS, *(f"{'x' * number}*/ \\" for number in range(60, 110, 7))):
        whole = program(each)
        assert shape(script, whole) == shape(script, plain), each
        assert each.encode() in values(script, whole), each
        if script.in_c and CC:
            compiled(whole)
        elif not script.in_c:
            assert "on " + script.backend in (ast.get_docstring(ast.parse(whole)) or "").partition("\n")[0]


STUBS = """
#include <stdio.h>
int dnnl_graph_op_set_attr_str(void *op, int id, const char *text, size_t length) {
    for (size_t k = 0; k < length; k++) printf("%02x", (unsigned char)text[k]);
    puts(" is what it was told");
    return 0;
}
int dnnl_graph_graph_finalize(void *graph) { return 1; }
const char *dnnl_status2str(int status) { return "none"; }
const char *dnnl_cpu_isa2str(int status) { return "none"; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with the functions of oneDNN, which tells the text of an attribute and then refuses the graph."""
    if CC is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("library")
    rest = set(re.findall(r"\b(dnnl_\w+)\(", onednn_c.API)) - set(re.findall(r"\b(dnnl_\w+)\(", STUBS))
    (folder / "stubs.c").write_text(STUBS + "".join(f"int {each}() {{ return 0; }}\n" for each in sorted(rest)))
    made = folder / "libdnnl.so"
    subprocess.run(["cc", "-w", "-shared", "-fPIC", folder / "stubs.c", "-o", made], check=True, timeout=60)
    return made


@pytest.mark.parametrize("in_c", [False, True], ids=["python", "c"])
def test_a_script_that_is_run_hands_the_text_on_and_does_nothing_else(
    in_c: bool, library: Path, tmp_path: Path, cli: Cli
) -> None:
    for number, each in enumerate([*TEXTS[:8], *TEXTS[-7:], *TEXTS[17:26]]):
        words = case_file(tmp_path / "cases", attributes=f"{{axis: {{type: string, values: {quoted(each)}}}}}")
        out = cli("explain", "a-case", *Script("onednn", in_c).words, *words).expect(0).out
        path = tmp_path / f"{number}.{'c' if in_c else 'py'}"
        path.write_text(out, encoding="utf-8")
        command = [sys.executable, str(path)]
        if in_c:
            command = [str(path.with_suffix(""))]
            link = ["cc", str(path), "-o", *command, str(library), f"-Wl,-rpath,{library.parent}"]
            subprocess.run(link, check=True, timeout=60)
        env = {"ONEDNN_LIBRARY": str(library)}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=60, check=False)
        assert f"{each.encode().hex()} is what it was told".encode() in done.stdout, (each, done.stderr)
        assert not (tmp_path / FILE).exists(), each


@every_script
def test_a_command_in_a_case_is_not_run(script: Script, tmp_path: Path, cli: Cli) -> None:
    run = (
        "import runpy, sys\nfrom unittest.mock import MagicMock\n"
        "for name in sys.argv[2:]: sys.modules[name] = MagicMock()\n"
        "runpy.run_path(sys.argv[1])\n"
    )
    attacks = (
        f"{{axis: {{type: s64, values: {quoted(IN_PYTHON)}}}}}",
        f"{{shape: {{type: 's64[]', values: [{quoted(IN_PYTHON)}]}}}}",
        f"{{special_zero: {{type: bool, values: {quoted(IN_PYTHON)}}}}}",
        f"{{{quoted(f'x={IN_PYTHON}, y')}: {{type: s64, values: 1}}}}",
        f"{{axis: {{type: {quoted(IN_PYTHON)}, values: 1}}}}",
    )
    for attack in attacks:
        code, out, err = cli("explain", "a-case", *script.words, *case_file(tmp_path, attributes=attack))
        if code == 0 and not script.in_c:
            (tmp_path / "script.py").write_text(out, encoding="utf-8")
            modules = sorted({"onnx", "openvino", *re.findall(r"^(?:import|from) ([\w.]+)", out, re.MULTILINE)})
            parents = [name.rpartition(".")[0] for name in modules if "." in name]
            ours = (*sys.stdlib_module_names, "numpy")
            foreign = [name for name in (*parents, *modules) if name.partition(".")[0] not in ours]
            command = [sys.executable, "-c", run, "script.py", *foreign]
            subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
            assert not (tmp_path / FILE).exists(), out
        assert code == 2, attack
        assert re.search(r"a\.yaml:\d+: ", err), err
        assert err.count("\n") == 1, err


@pytest.mark.parametrize(
    "backend",
    [f'torch@") + {IN_PYTHON} + ("', "torch@a\nb", "torch@", "onnxruntime@cuda", "torch-mkldnn@cuda", "litert@x"],
)
def test_a_backend_or_device_that_there_is_not_makes_no_script(backend: str, tmp_path: Path, cli: Cli) -> None:
    code, out, err = cli("explain", "a-case", "--backend", backend, *case_file(tmp_path, attributes=""))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


BAD: tuple[tuple[str, str], ...] = (
    *(("id", quoted(name)) for name in NAMES),
    *(("rule", quoted(name)) for name in NAMES),
    *(("attributes", f"{{{quoted(name)}: missing}}") for name in (*NAMES, "1a", "a.b", "a-b", "x" * 65)),
    *(("attributes", f"{{axis: {{type: {quoted(name)}, values: 1}}}}") for name in NAMES),
    *(("expect", f"{{{quoted(name)}: reject}}") for name in NAMES),
    *((key, quoted(f"f32{name}")) for name in NAMES for key in ("shape_type", "dst_type") if name),
    *(("src", quoted(each)) for each in ("f32[2, 3]\n", "f32[x]", f"{IN_PYTHON}[2]", "f32[2]; x", "f32[٣]")),
    *(("bits", quoted(each)) for each in ("3f800000\n", IN_PYTHON, "all\n", "3f800000;")),
    ("layout", quoted("dense\n")), ("declared", quoted(IN_PYTHON)), ("shape", f"[{quoted(IN_PYTHON)}]"),
    ("attributes", f"{{axis: {{type: s64, values: {quoted('1')}}}}}"),
    ("attributes", f"{{axis: {{type: 'f32[]', values: [1, {quoted('nan')}]}}}}"),
)  # fmt: skip


@pytest.mark.parametrize(("key", "value"), BAD)
def test_a_name_that_is_none_is_refused_with_its_line(key: str, value: str, tmp_path: Path, cli: Cli) -> None:
    words = case_file(tmp_path / "cases", **{key: value})
    err = cli("explain", "a-case", *words).expect(2).err
    lines = (tmp_path / "cases" / "a.yaml").read_text(encoding="utf-8").splitlines()
    number = next(number for number, line in enumerate(lines, 1) if line.startswith(f"    {key}:"))
    assert re.search(rf"a\.yaml:{number}: ", err), err
    assert all("a.yaml:" in line for line in err.splitlines()), err


@pytest.mark.parametrize("name", ["a b.yaml", "a;b.yaml", "a\nb.yaml", "é.yaml", "$(id).yaml", "a'b.yaml"])
def test_a_case_file_of_another_name_is_refused(name: str, tmp_path: Path, cli: Cli) -> None:
    words = case_file(tmp_path)
    (tmp_path / "a.yaml").rename(tmp_path / name)
    err = cli("list", "cases", *words).expect(2, err=[repr(name), "rename the file"]).err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", [name for name in NAMES if name])
@pytest.mark.parametrize(
    ("file", "old"),
    [
        ("sources", "id: static-2020"), ("sources", "operation: StaticReshape"),
        ("sources", "file: 000_b911fcf25091713d.txt"),
        ("operations", "id: StaticReshape"), ("operations", "types: [f32"), ("rules", "id: one-infer"),
        ("findings", "id: "),
    ],
)  # fmt: skip
def test_a_name_in_a_specification_that_is_none_is_refused(name: str, file: str, old: str, tmp_path: Path) -> None:
    folder = tmp_path / "spec"
    shutil.copytree(spec_folder(), folder, ignore=shutil.ignore_patterns("schema", "*.py", "__pycache__"))
    path = folder / f"{file}.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if old in line)
    before, key, after = lines[at].partition(old)
    word = key.split()[-1].lstrip("[") if key.strip()[-1] != ":" else ""
    lines[at] = before + key.removesuffix(word) + quoted(name) + (after if word else "\n")
    path.write_text("".join(lines), encoding="utf-8")
    with pytest.raises(Malformed) as malformed:
        load_spec(folder)
    assert any(problem.place.line == at + 1 for problem in malformed.value.problems), malformed.value
    assert all(str(problem).isprintable() for problem in malformed.value.problems)


def test_the_bundled_names_are_all_names() -> None:
    suite = load_suite()
    names = [*suite.cases, *suite.spec.rules, *suite.spec.findings, *suite.spec.documents, *suite.spec.operations]
    names += [name for case in suite.cases.values() for name in case.attributes]
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) for name in names)


def test_the_json_of_a_script_is_the_script(tmp_path: Path, cli: Cli) -> None:
    words = case_file(tmp_path, attributes=f"{{axis: {{type: string, values: {quoted(TEXTS[-1])}}}}}")
    _, plain, _ = cli("explain", "a-case", "--backend", "onednn", *words)
    _, out, _ = cli("explain", "a-case", "--backend", "onednn", "--json", *words)
    assert json.loads(out)["text"] == plain


# ── what else is made from texts of others ────────────────────────────────────────────────────────
PASTED = """
from conformance.adapter import FunctionAdapter


class Mine(FunctionAdapter):
    name, version = "mine", "1"

    def reshape(self, src, shape, special_zero):
        raise ValueError("no" + chr(10) + "  - id: pasted" + chr(10) + "    rule: one-infer" + chr(13) + chr(0x2028))
"""


SWEEP = "sweep --rank 1 --max-dim 1 --type f32 --operation StaticReshape"


@pytest.mark.parametrize("words", [SWEEP, "hunt --examples 3"], ids=["sweep", "hunt"])
def test_a_message_of_a_backend_adds_no_case_to_what_is_shown(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PASTED, encoding="utf-8")
    command, *options = words.split()
    out = cli(command, "mine.py:Mine", "--isolation", "none", *options).expect(1).out
    assert "  - id: refused-a-legal-call" in out
    assert not re.search(r"^ *- id: pasted", out, re.MULTILINE)


def test_a_text_in_a_case_that_was_found_stays_a_text(tmp_path: Path) -> None:
    for value in TEXTS[:-9]:
        row = row_of({"axis": text(value)})
        written = case_text(row.case, "extra-attributes", row, "a found case")
        (tmp_path / "a.yaml").write_text(f"about: One.\ncases:\n{written}", encoding="utf-8")
        (case,) = load_cases(tmp_path, spec()).values()
        assert case.attributes == row.case.attributes, value


@pytest.mark.parametrize("name", ["none", "None", "true", "FALSE".title(), "function-adapter", "array"])
def test_a_new_adapter_of_any_name_can_be_imported(
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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_name_of_two_lines_makes_no_completion(cli: Cli, shell: str, tmp_path: Path) -> None:
    folder = tmp_path / "spec"
    shutil.copytree(spec_folder(), folder, ignore=shutil.ignore_patterns("schema", "*.py", "__pycache__"))
    path = folder / "findings.yaml"
    path.write_text(re.sub(r"- id: \S+", r'- id: "poweroff\\n"', path.read_text(encoding="utf-8"), count=1), "utf-8")
    assert cli("completion", shell, "--spec", folder).expect(2, err=r"'poweroff\n'").out == ""
