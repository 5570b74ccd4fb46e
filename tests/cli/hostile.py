"""Texts that try to become code in a script, and what a script is made of."""

import ast
import re
from collections.abc import Mapping
from functools import lru_cache

from conformance.adapters import repro
from conformance.adapters.repro import functions
from conformance.adapters.repro.script import join_parts
from conformance.meaning.contract import contracts
from conformance.model import Case, ExpectedResult, Operand, Place, Step
from conformance.plan.rows import Row, rows_of
from conformance.report.repeat_script import list_due

from ..adapters.test_repro import BACKENDS
from ..builders import spec

FILE = "was-run"
IN_PYTHON = f"__import__('os').system('touch {FILE}')"
TEXTS = (
    "", "0", '"', "'", "\\", '\\"', "\\\\'", '"""', "'''", "*/", "/*", "*/ int x; /*", "//", "??/", '??/"', "??",
    "%s{}{0}",
    "\n", "\r", "\r\n", "*\\\n/ int x; /*", "\x00", "\x0b\x0c\x1c\x85", "\u2028\u2029", "\u202e\u2066", "\x7f\x80\xff",
    "é 漢 \N{GRINNING FACE}", "laid_out(", "#define x", "x" * 5000, f"'); {IN_PYTHON}; ('", f"\\'); {IN_PYTHON}; (\\'",
    f'"""\n{IN_PYTHON}\n"""', f"\n{IN_PYTHON}\n",
)  # fmt: skip
"""Texts of an attribute. Each would end a literal, a comment or a line of a script that does not escape it."""
NAMES = ("a b", 'x"', "x'y", "x\n", "x;y", "é", "$(id)", "`id`", "../x", "a=1", "", "*/", f"axis={IN_PYTHON}")
"""What is no name."""


NODES = tuple(each for each in BACKENDS if re.match("onnx|openvino|onednn|tract|tvm", each))
"""Those that say the attributes of a node; the others are function calls."""


def script_of(backend: str, row: Row) -> str:
    text: str = join_parts({row.id: repro.WRITERS[backend](row, backend)}, {row.id: list_due(row)})
    return text


def library_of(backend: str) -> object:
    """Return what all scripts of a library share: in the table, the function that reads an answer."""
    template = functions.CONSTANT.get(backend)
    return template.look if template else repro.WRITERS[backend]


WRITERS = tuple(each for each in NODES if each in ("onnxruntime", "openvino", "onednn"))
"""One of each module that writes such scripts."""
OF_EACH_LIBRARY = (*{library_of(each): each for each in reversed(BACKENDS)}.values(),)
"""One of each library's template, and of each module that writes scripts."""


def row_of(attributes: Mapping[str, Operand | None], given: str = "attribute", bits: str | None = None) -> Row:
    """A row of a plain case with these attributes, made without the loader."""
    step = Step("f32", (2, 3), ((6,),), (False,), {"*": ExpectedResult("unspecified")}, bits=bits)
    case = Case("a-case", "cases/a.yaml", "extra-attributes", (step,), Place("cases/a.yaml", 1), attributes=attributes)
    return next(row for row in rows_of([case], spec(), contracts(spec())) if row.shape_passed_as == given)


def text(value: object) -> Operand:
    return Operand("string", (), (value,))


class Shape(ast.NodeTransformer):
    """Each literal becomes its type: what is left is what the script does. The values are kept apart."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        self.values.append(node.value)
        return ast.Name("number" if isinstance(node.value, int | float) else type(node.value).__name__)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        visited = self.generic_visit(node)
        return node.operand if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Name) else visited


def shape(program: str) -> object:
    """Return what a program does, without the values of its literals."""
    return _parts(program)[0]


@lru_cache(8)
def _parts(program: str) -> tuple[list[str], list[object]]:
    """Return what each statement of a program in Python does, and the values of its literals.

    Most statements occur in many programs and are parsed once. What is before a statement counts as its text.
    """
    assert program.isascii(), "columns are counted in bytes"
    lines = re.split("\r\n|\r|\n", program)
    shapes: list[str] = []
    literals: list[object] = []
    line, column = 0, 0
    for node in ast.parse(program).body:
        assert node.end_lineno
        first, last = lines[line][column:], lines[line + 1 : node.end_lineno]
        line, column = node.end_lineno - 1, node.end_col_offset or 0
        source = "\n".join((first, *last, str(column)))
        if source not in _STATEMENTS:
            visitor = Shape()
            _STATEMENTS[source] = ast.dump(visitor.visit(node)), visitor.values
        shapes.append(_STATEMENTS[source][0])
        literals += _STATEMENTS[source][1]
    return shapes, literals


_STATEMENTS: dict[str, tuple[str, list[object]]] = {}


def values(program: str) -> list[object]:
    """The values of all literals."""
    return [each.encode() if isinstance(each, str) else each for each in _parts(program)[1]]


def quote(value: str) -> str:
    """YAML in double quotes, in which every character that is no plain one is escaped."""
    plain = "".join(c if c.isprintable() and ord(c) < 1 << 16 else f"\\U{ord(c):08x}" for c in escape(value))
    return f'"{plain}"'


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


BAD: tuple[tuple[str, str], ...] = (
    *(("id", quote(name)) for name in NAMES),
    *(("rule", quote(name)) for name in NAMES),
    *(("attributes", f"{{{quote(name)}: missing}}") for name in (*NAMES, "1a", "a.b", "a-b", "x" * 65)),
    *(("attributes", f"{{axis: {{type: {quote(name)}, values: 1}}}}") for name in NAMES),
    *(("expect", f"{{{quote(name)}: reject}}") for name in NAMES),
    *((key, quote(f"f32{name}")) for name in NAMES for key in ("shape_type", "dst_type") if name),
    *(("src", quote(each)) for each in ("f32[2, 3]\n", "f32[x]", f"{IN_PYTHON}[2]", "f32[2]; x", "f32[٣]")),
    *(("bits", quote(each)) for each in ("3f800000\n", IN_PYTHON, "all\n", "3f800000;")),
    ("layout", quote("dense\n")), ("declared", quote(IN_PYTHON)), ("shape", f"[{quote(IN_PYTHON)}]"),
    ("attributes", f"{{axis: {{type: s64, values: {quote('1')}}}}}"),
    ("attributes", f"{{axis: {{type: 'f32[]', values: [1, {quote('nan')}]}}}}"),
)  # fmt: skip
