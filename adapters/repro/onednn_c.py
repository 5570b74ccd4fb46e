"""StaticReshape of oneDNN Graph as a C program that declares the functions itself, so that it needs no header."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.model import Unsupported
from conformance.model.types import WIDTH
from conformance.plan.contents import SPREAD, scramble_of
from conformance.plan.memory import TensorSpec, volume_of
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep

from ..onednn import Attribute, Blueprint, Op, TensorFields, blueprint
from .literals import c_float, c_integer, c_list, c_string
from .onednn import sources, text_of
from .plain import checked_steps
from .script import cycle_of, has_default_elements, memory_layout

MAX_TENSORS = 16
"""The program has room for so many tensors of a graph."""
API = r"""
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    size_t id;
    int ndims;
    int64_t dims[12];
    int data_type, property, layout_type;
    int64_t strides[12];
} tensor_t; /* dnnl_graph_logical_tensor_t */
typedef void *handle;

const char *dnnl_status2str(int), *dnnl_cpu_isa2str(int);
int dnnl_get_effective_cpu_isa(void);
int dnnl_engine_create(handle *, int, size_t), dnnl_stream_create(handle *, handle, unsigned), dnnl_stream_wait(handle);
int dnnl_graph_logical_tensor_init(tensor_t *, size_t, int, int32_t, int, int);
int dnnl_graph_logical_tensor_init_with_dims(tensor_t *, size_t, int, int32_t, const int64_t *, int, int);
int dnnl_graph_logical_tensor_init_with_strides(
        tensor_t *, size_t, int, int32_t, const int64_t *, const int64_t *, int);
int dnnl_graph_logical_tensor_get_mem_size(const tensor_t *, size_t *);
int dnnl_graph_op_create(handle *, size_t, int, const char *);
int dnnl_graph_op_add_input(handle, const tensor_t *), dnnl_graph_op_add_output(handle, const tensor_t *);
int dnnl_graph_op_set_attr_s64(handle, int, const int64_t *, size_t);
int dnnl_graph_op_set_attr_f32(handle, int, const float *, size_t);
int dnnl_graph_op_set_attr_bool(handle, int, const uint8_t *, size_t);
int dnnl_graph_op_set_attr_str(handle, int, const char *, size_t);
int dnnl_graph_graph_create(handle *, int), dnnl_graph_add_op(handle, handle);
int dnnl_graph_graph_finalize(handle), dnnl_graph_graph_filter(handle, int);
int dnnl_graph_graph_get_partition_num(handle, size_t *), dnnl_graph_graph_get_partitions(handle, size_t, handle *);
int dnnl_graph_partition_is_supported(handle, uint8_t *);
int dnnl_graph_partition_get_input_ports_num(handle, size_t *);
int dnnl_graph_partition_get_input_ports(handle, size_t, tensor_t *);
int dnnl_graph_partition_get_output_ports_num(handle, size_t *);
int dnnl_graph_partition_get_output_ports(handle, size_t, tensor_t *);
int dnnl_graph_compiled_partition_create(handle *, handle);
int dnnl_graph_partition_compile(
        handle, handle, size_t, const tensor_t **, size_t, const tensor_t **, handle);
int dnnl_graph_compiled_partition_query_logical_tensor(handle, size_t, tensor_t *);
int dnnl_graph_tensor_create(handle *, const tensor_t *, handle, void *);
int dnnl_graph_compiled_partition_execute(handle, handle, size_t, const handle *, size_t, const handle *);

#define MOST %MOST%
#define UNKNOWN INT64_MIN
#define TRY(name, ...) \
    do { \
        int status_ = name(__VA_ARGS__); \
        if (status_) { \
            printf("refused: %s at %s\n", dnnl_status2str(status_), #name); \
            return 0; \
        } \
    } while (0)

static handle engine, stream;

struct side { size_t count, ids[MOST]; };
struct graph {
    tensor_t known[MOST];
    size_t tensors, parts;
    void *held[MOST];
    struct { handle compiled; struct side in, out; } part[MOST];
    int built;
};

static size_t place(struct graph *g, size_t id) {
    size_t k = 0;
    while (g->known[k].id != id) k++;
    return k;
}

static int ports(handle partition, struct side *in, struct side *out) {
    tensor_t some[MOST];
    TRY(dnnl_graph_partition_get_input_ports_num, partition, &in->count);
    TRY(dnnl_graph_partition_get_input_ports, partition, in->count, some);
    for (size_t k = 0; k < in->count; k++) in->ids[k] = some[k].id;
    TRY(dnnl_graph_partition_get_output_ports_num, partition, &out->count);
    TRY(dnnl_graph_partition_get_output_ports, partition, out->count, some);
    for (size_t k = 0; k < out->count; k++) out->ids[k] = some[k].id;
    return 1;
}

/* Compiles the parts that the library makes of a graph, in the order in which they follow one another. */
static int compile(struct graph *g, handle whole) {
    handle partitions[MOST];
    TRY(dnnl_graph_graph_finalize, whole);
    TRY(dnnl_graph_graph_filter, whole, 1);
    TRY(dnnl_graph_graph_get_partition_num, whole, &g->parts);
    TRY(dnnl_graph_graph_get_partitions, whole, g->parts, partitions);
    for (size_t done = 0; done < g->parts; done++) {
        size_t next = 0, least = SIZE_MAX;
        for (size_t k = 0; k < g->parts; k++) {
            struct side in, out;
            if (partitions[k] && ports(partitions[k], &in, &out) && out.count && out.ids[0] < least) {
                next = k;
                least = out.ids[0];
            }
        }
        struct side *in = &g->part[done].in, *out = &g->part[done].out;
        const tensor_t *inputs[MOST], *outputs[MOST];
        uint8_t supported;
        TRY(dnnl_graph_partition_is_supported, partitions[next], &supported);
        if (!supported) return puts("refused: not supported, says dnnl_graph_partition_is_supported"), 0;
        ports(partitions[next], in, out);
        for (size_t k = 0; k < in->count; k++) inputs[k] = &g->known[place(g, in->ids[k])];
        for (size_t k = 0; k < out->count; k++) outputs[k] = &g->known[place(g, out->ids[k])];
        handle *part = &g->part[done].compiled;
        TRY(dnnl_graph_compiled_partition_create, part, partitions[next]);
        TRY(dnnl_graph_partition_compile, partitions[next], *part, in->count, inputs, out->count, outputs, engine);
        for (size_t k = 0; k < out->count; k++)
            TRY(dnnl_graph_compiled_partition_query_logical_tensor, *part, out->ids[k],
                    &g->known[place(g, out->ids[k])]);
        partitions[next] = NULL;
    }
    return 1;
}

static int tensors(struct graph *g, struct side *side, handle *made) {
    for (size_t k = 0; k < side->count; k++) {
        size_t at = place(g, side->ids[k]);
        TRY(dnnl_graph_tensor_create, &made[k], &g->known[at], engine, g->held[at]);
    }
    return 1;
}

static int execute(struct graph *g) {
    for (size_t k = 0; k < g->parts; k++) {
        struct side *in = &g->part[k].in, *out = &g->part[k].out;
        handle inputs[MOST], outputs[MOST];
        for (size_t o = 0; o < out->count; o++) {
            size_t size, at = place(g, out->ids[o]);
            TRY(dnnl_graph_logical_tensor_get_mem_size, &g->known[at], &size);
            g->held[at] = calloc(size + 1, 1);
        }
        if (!tensors(g, in, inputs) || !tensors(g, out, outputs)) return 0;
        TRY(dnnl_graph_compiled_partition_execute, g->part[k].compiled, stream, in->count, inputs, out->count, outputs);
        TRY(dnnl_stream_wait, stream);
    }
    return 1;
}

%HELPERS%/* Where an element lies in memory, counted in elements; past 12 dims the struct has no strides. */
static size_t place_of(size_t k, const tensor_t *fields) {
    int64_t at = 0;
    if (fields->ndims > 12) return k;
    for (int axis = fields->ndims; axis-- > 0; k /= fields->dims[axis])
        at += (int64_t)(k % fields->dims[axis]) * fields->strides[axis];
    return at;
}

static void tell(struct graph *g, size_t dst, const char *words, size_t volume, int width) {
    static const char *types[] = {"?", "f16", "bf16", "f32", "s32", "s8", "u8", "f64"};
    static const int widths[] = {1, 2, 2, 4, 4, 1, 1, 8};
    tensor_t *fields = &g->known[place(g, dst)];
    const char *got = g->held[place(g, dst)];
    int64_t count = 1, *dims = fields->dims; /* past 12 the library reads on in the struct, and so does this */
    printf("answered %s [", types[fields->data_type & 7]);
    for (int k = 0; k < fields->ndims; k++) {
        int64_t length;
        memcpy(&length, (char *)dims + 8 * k, 8);
        printf("%s%" PRId64, k ? ", " : "", length);
        count *= length;
    }
    size_t size = (size_t)count * widths[fields->data_type & 7], changed = 0, first = 0;
    if (size != volume * width) {
        printf("], %" PRId64 " elements of %zu\n", count, volume);
        return;
    }
    for (size_t k = volume; k-- > 0;)
        if (memcmp(got + place_of(k, fields) * width, words + k * width, width)) changed++, first = k;
    if (!changed) {
        puts("], every element as it was");
        return;
    }
    uint64_t was = 0, is = 0;
    memcpy(&was, words + first * width, width);
    memcpy(&is, got + place_of(first, fields) * width, width);
    printf("], %zu of %zu elements changed, first %zu: ", changed, volume, first);
    printf("%#" PRIx64 " became %#" PRIx64 "\n", was, is);
}
"""
NUMBERS = r"""/* The default elements: every number of the type, positive and negative, in an order that jumps. */
static char *numbers(size_t volume, int width, uint64_t start, const uint64_t *scramble) {
    uint64_t places = scramble[0], jump = scramble[1], fine = scramble[2], low = scramble[3];
    uint64_t positive = scramble[4], gap = scramble[5], spread = %SPREAD%;
    char *words = calloc(volume + 1, width);
    for (size_t k = 0; k < volume; k++) {
        uint64_t turn = (start + k) / places, place = (start + k) % places, at = place * jump % places << fine;
        uint64_t word = low + at + (at >= positive ? gap : 0);
        if (fine) word ^= (place * spread >> (64 - fine)) ^ (turn * spread & ((UINT64_C(1) << fine) - 1));
        memcpy(words + k * width, &word, width); /* of the lowest bytes: little-endian */
    }
    return words;
}

"""
ELEMENTS = r"""struct run { uint64_t first, count; };

/* Elements in row-major order: the runs, over and over. */
static char *elements(size_t volume, int width, size_t count, const struct run *runs) {
    char *words = calloc(volume + 1, width);
    for (size_t k = 0, r = 0; k < volume; r = (r + 1) % count)
        for (uint64_t each = 0; each < runs[r].count && k < volume; each++, k++) {
            uint64_t word = runs[r].first + each;
            memcpy(words + k * width, &word, width); /* of the lowest bytes: little-endian */
        }
    return words;
}

"""
LAID_OUT = r"""/* The same at strides, which are counted in elements. */
static char *laid_out(
        const char *words, int width, int rank, const int64_t *dims, const int64_t *strides, size_t size) {
    char *memory = calloc(size, width);
    int64_t index[12] = {0}, at = 0;
    for (size_t k = 0;; k++) {
        memcpy(memory + at * width, words + k * width, width);
        int axis = rank - 1;
        for (; axis >= 0; axis--) {
            at += strides[axis];
            if (++index[axis] < dims[axis]) break;
            at -= strides[axis] * dims[axis];
            index[axis] = 0;
        }
        if (axis < 0) return memory;
    }
}

"""
MAIN = """
int main(void) {{
    setvbuf(stdout, NULL, _IONBF, 0); /* a line is out before a crash */
    if (dnnl_engine_create(&engine, 1, 0) || dnnl_stream_create(&stream, engine, 1)) return puts("no CPU engine"), 1;
    printf("instruction set %s\\n", dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa()));
{calls}
    return 0;
}}
"""


def write_script(row: Row, backend: str = "onednn") -> str:
    """Return the program of a row, without the comment at its head."""
    graphs: dict[str, int] = {}
    functions, steps = [], []
    for number, step in enumerate(checked_steps(row), 1):
        plan = blueprint(step.graph)
        if len(plan.tensors) > MAX_TENSORS:
            raise Unsupported(f"more than {MAX_TENSORS} tensors in a graph")
        if repr(plan) not in graphs:
            graphs[repr(plan)] = len(graphs) + 1
            functions.append(graph_code(plan, graphs[repr(plan)]))
        steps.append(step_code(step, plan, number, graphs[repr(plan)]))
    helpers = {"numbers(": NUMBERS, "elements(": ELEMENTS, "laid_out(": LAID_OUT}
    used = "".join(text for name, text in helpers.items() if any(name in each for each in steps))
    api = API.lstrip().replace("%MOST%", str(MAX_TENSORS)).replace("%HELPERS%", used)
    api = api.replace("%SPREAD%", f"UINT64_C({SPREAD:#x})")
    calls = "\n".join(f'    printf("step {number}: ");\n    step_{number}();' for number in range(1, len(steps) + 1))
    return api + "".join(functions) + "".join(steps) + MAIN.format(calls=calls)


# ── the graph ─────────────────────────────────────────────────────────────────────────────────────


def graph_code(plan: Blueprint, number: int) -> str:
    lines = [
        f"static struct graph g = {{.tensors = {len(plan.tensors)}}};",
        "if (g.built) return &g;",
        "handle whole, op;",
    ]
    for place, fields in enumerate(plan.tensors.values()):
        lines += tensor_lines(fields, f"&g.known[{place}]")
    places = {id_: place for place, id_ in enumerate(plan.tensors)}
    lines.append("TRY(dnnl_graph_graph_create, &whole, 1);")
    for each in plan.ops:
        lines += op_lines(each, places)
    lines += ["g.built = compile(&g, whole);", "return g.built ? &g : NULL;"]
    return f"\nstatic struct graph *graph_{number}(void) {{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def tensor_lines(fields: TensorFields, place: str) -> list[str]:
    if fields.dims is None:
        return [f"TRY(dnnl_graph_logical_tensor_init, {place}, {fields.id}, {fields.type}, -1, 2, 0);"]
    dims = longs("UNKNOWN" if length is None else c_integer(length) for length in fields.dims)
    begin = f"{place}, {fields.id}, {fields.type}, {len(fields.dims)}, {dims}"
    if fields.strides is None:
        return [f"TRY(dnnl_graph_logical_tensor_init_with_dims, {begin}, 2, 0);"]
    return [f"TRY(dnnl_graph_logical_tensor_init_with_strides, {begin}, {longs(map(c_integer, fields.strides))}, 0);"]


def op_lines(op: Op, places: dict[int, int]) -> list[str]:
    lines = [f'TRY(dnnl_graph_op_create, &op, {op.id}, 72 /* static_reshape */, "reshape");']
    lines += [f"TRY(dnnl_graph_op_set_attr_{attribute_code(each)});" for each in op.attributes]
    lines += [f"TRY(dnnl_graph_op_add_input, op, &g.known[{places[id_]}]);" for id_ in op.inputs]
    lines += [f"TRY(dnnl_graph_op_add_output, op, &g.known[{places[id_]}]);" for id_ in op.outputs]
    return [*lines, "TRY(dnnl_graph_add_op, whole, op);"]


def attribute_code(each: Attribute) -> str:
    if each.type == "string":
        text = text_of(each)
        return f"str, op, {each.id:#x}, {c_string(text)}, {len(text)}"
    length = len(each.values)
    if each.type == "s64":
        return f"s64, op, {each.id:#x}, {longs(map(c_integer, each.values))}, {length}"
    kind = {"f32": "float", "bool": "uint8_t"}[each.type]
    values = c_list(c_integer(value, 8) if each.type == "bool" else c_float(value) for value in each.values)
    return f"{each.type}, op, {each.id:#x}, ({kind}[]){{{values}}}, {length}"


def longs(values: Iterable[str]) -> str:
    return f"(int64_t[]){{{c_list(values)}}}"


# ── a call ────────────────────────────────────────────────────────────────────────────────────────


def step_code(step: RowStep, plan: Blueprint, number: int, graph: int) -> str:
    source = step.source
    volume, width = volume_of(source.dims), WIDTH[source.type]
    made = f"elements({c_integer(volume)}, {width}, {runs(source, volume)})"
    if has_default_elements(source):
        scramble = f"(uint64_t[]){{{', '.join(map(hex, scramble_of(source.type)))}}}"
        made = f"numbers({c_integer(volume)}, {width}, {source.start}, {scramble})"
    lines = [f"char *words = {made};", "char *memory = words;"]
    if at := memory_layout(source):
        dims, strides = longs(map(c_integer, source.dims)), longs(map(c_integer, at.strides))
        rank = len(source.dims)
        lines.append(f"memory = laid_out(words, {width}, {rank}, {dims}, {strides}, {c_integer(at.size - at.offset)});")
    lines += [f"struct graph *g = graph_{graph}();", "if (!g) return;"]
    lines += [f"g->held[place(g, {id_})] = memory;" for id_ in sources(plan)]
    lines.append(f"if (execute(g)) tell(g, {plan.dst}, words, {c_integer(volume)}, {width});")
    return f"\nstatic void step_{number}(void) {{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def runs(source: TensorSpec, volume: int) -> str:
    """src's words as runs of consecutive ones: how many, and the array."""
    parts, _ = cycle_of(source, volume)
    told = [f"{{{part.start:#x}, {len(part)}}}" if isinstance(part, range) else f"{{{part:#x}, 1}}" for part in parts]
    return f"{max(len(told), 1)}, (struct run[]){{{', '.join(told) or '{0, 1}'}}}"
