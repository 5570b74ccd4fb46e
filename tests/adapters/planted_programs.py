"""Faults planted in the templates of other languages: each replaces a few lines of the program by wrong ones.

The templates stay free of them, and no second program is kept. If the lines of a template change, `plant` fails and
names the lines to look for.
"""

from pathlib import Path
from typing import NamedTuple


class PlantedFault(NamedTuple):
    """A fault: the language, what is wrong, a rule with cases that must catch it, and the lines before and after."""

    language: str
    fault: str
    rule: str
    edits: tuple[tuple[str, str], ...]

    def plant(self, source: Path) -> None:
        """Change a copy of the template."""
        text = source.read_text(encoding="utf-8")
        for before, after in self.edits:
            assert text.count(before) == 1, (
                f"{self.language}, {self.fault}: {before!r} is there {text.count(before)} times"
            )
            text = text.replace(before, after)
        source.write_text(text, encoding="utf-8")


def _c(fault: str, rule: str, *edits: tuple[str, str]) -> PlantedFault:
    return PlantedFault("c", fault, rule, edits)


_COPY = "    copy_elements(src, dst->data);\n"
_MOVE = "        memcpy(to, from, width);\n"
_QUIET = """        int nan = width == 4 && (to[3] & 0x7f) == 0x7f && to[2] & 0x80 && (to[2] & 0x7f || to[1] || to[0]);
        if (nan) to[2] |= 0x40;
"""
_ENTRIES = "        const Tensor src = takes_src"
_FREEZE = """        static const char *seen;
        static int64_t kept[99];
        static size_t length;
        if (!values && seen != graph) {
            seen = graph;
            length = entries;
            memcpy(kept, shape, length * sizeof *kept);
        }
        if (!values) {
            shape = kept;
            entries = length;
        }
"""
_KNOWN = "known = volume(dims, entries);\n"
_FORGET = """    for (size_t i = 0; i < entries && infer < entries; i++)
        if (special_zero && !shape[i] && dims[i]) known /= (uint64_t)dims[i];
"""
_CPP_COPY = "    copy_elements(src, dst.memory.data());\n"
_CPP_WRITE = "    if (volume(src.dims)) *const_cast<unsigned char *>(src.data()) ^= 1;\n"
JS_ANSWER = "  return { dims, elements"
_JS_WRITE = "  if (src.memory.length) src.memory[src.offset] ^= 1;\n"
_C_DIMS = "    const char *why = find_dims(operation, src, shape, entries, special_zero, dims);\n"
_C_WRITE = "    if (why && volume(src->dims, src->rank)) *src->data ^= 1;\n"
_CPP_DST = "    Tensor dst = new_tensor(src.type, find_dims("
_CPP_REJECTS = f"""    try {{
        find_dims(operation, src.dims, shape, special_zero);
    }} catch (const Rejected &) {{
    {_CPP_WRITE}        throw;
    }}
"""
_JS_DIMS = "  const dims = findDims("
_JS_REJECTS = f"""  try {{
    findDims(operation, src.dims, shape, specialZero);
  }} catch (error) {{
  {_JS_WRITE}    throw error;
  }}
"""
_RUST_DIMS = "    let dims = find_dims("
_RUST_ANSWER = "    Ok((dims, copy"
_RUST_WRITE = """    if volume(&src.dims) != 0 {
        unsafe { *(src.memory.as_ptr() as *mut u8).add(src.offset) ^= 1 };
    }
"""

_RUST_REJECTS = f"""    if find_dims(operation, &src.dims, shape, special_zero).is_err() {{
    {_RUST_WRITE}    }}
"""

PLANTED = (
    _c(
        "reads src as if it were dense",
        "layout-is-no-content",
        (_COPY, "    memcpy(dst->data, src->data, dst->size < src->size ? dst->size : src->size);\n"),
    ),
    _c("does not look at special_zero", "zero-copies", ("if (shape[i] || !special_zero) continue;", "continue;")),
    _c("infers without the copied lengths", "infer-keeps-count", (_KNOWN, _KNOWN + _FORGET)),
    _c(
        "counts volumes in 32 bits",
        "same-volume",
        (
            "        product = product > UINT64_MAX / (uint64_t)dims[i] ? UINT64_MAX : product",
            "        product = (uint32_t)product",
        ),
        ("    return product;", "    return (uint32_t)product;"),
    ),
    _c("makes signalling NaNs quiet", "same-content", (_MOVE, _MOVE + _QUIET)),
    _c("writes into src", "each-call-alone", (_COPY, f"{_COPY}    if (dst->size) *src->data ^= 1;\n")),
    _c("crashes on an empty dst", "zero-literal", (_KNOWN, f"{_KNOWN}    if (!known) abort();\n")),
    _c(
        "believes what is declared of dst",
        "declared-output",
        ('\\"declared\\", ', ""),
        ('return get(node, "result") ? "declared" : NULL;', "return NULL;"),
    ),
    _c("takes a second -1 for 1", "one-infer", ("if (shape[i] == -1 && infer < entries) return", "if (0) return")),
    _c("keeps the first shape that arrives", "each-call-alone", (_ENTRIES, _FREEZE + _ENTRIES)),
    _c(
        "does not move the last element",
        "same-content",
        (_MOVE, "        memset(to, 0, width);\n        if (count > 1) memcpy(to, from, width);\n"),
    ),
    _c("hangs on rank 13", "rank-limit", (_COPY, f"{_COPY}    while (src->rank == 13) sleep(1);\n")),
    PlantedFault(
        "cpp",
        "reads src as if it were dense",
        "layout-is-no-content",
        (("from += src.strides[axis];", "from += width;"),),
    ),
    PlantedFault("cpp", "infers a second -1", "one-infer", (("if (inferred > 1)", "if (inferred > 2)"),)),
    PlantedFault(
        "javascript", "copies the wrong dimension", "zero-copies", (("specialZero ? src[i]", "specialZero ? src[0]"),)
    ),
    PlantedFault("javascript", "reads big-endian shapes", "literal-lengths", ((".reverse();", ";"),)),
    PlantedFault("cpp", "writes into src", "each-call-alone", ((_CPP_COPY, _CPP_COPY + _CPP_WRITE),)),
    PlantedFault("javascript", "writes into src", "each-call-alone", ((JS_ANSWER, _JS_WRITE + JS_ANSWER),)),
    PlantedFault("rust", "writes into src", "each-call-alone", ((_RUST_ANSWER, _RUST_WRITE + _RUST_ANSWER),)),
    _c("writes into src and rejects", "same-volume", (_C_DIMS, _C_DIMS + _C_WRITE)),
    PlantedFault("cpp", "writes into src and rejects", "same-volume", ((_CPP_DST, _CPP_REJECTS + _CPP_DST),)),
    PlantedFault("javascript", "writes into src and rejects", "same-volume", ((_JS_DIMS, _JS_REJECTS + _JS_DIMS),)),
    PlantedFault("rust", "writes into src and rejects", "same-volume", ((_RUST_DIMS, _RUST_REJECTS + _RUST_DIMS),)),
    PlantedFault("rust", "answers other volumes", "same-volume", (("if count == known =>", "if count >= known =>"),)),
    PlantedFault(
        "rust", "reads the next element", "same-content", (("src.offset as i64);", "src.offset as i64 + 1);"),)
    ),
)

PRINTS = (
    _c("prints", "", (_COPY, f'{_COPY}    puts("copied");\n')),
    PlantedFault("cpp", "prints", "", ((_CPP_COPY, f'{_CPP_COPY}    std::cout << "copied" << std::endl;\n'),)),
    PlantedFault("javascript", "prints", "", ((JS_ANSWER, f'  console.log("copied");\n{JS_ANSWER}'),)),
    PlantedFault("rust", "prints", "", ((_RUST_ANSWER, f'    println!("copied");\n{_RUST_ANSWER}'),)),
)
"""Libraries that print to the standard output."""
