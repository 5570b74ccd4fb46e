/* A complete backend in one file of C99, without a dependency: reshape itself, and the protocol to be asked for it.
 *
 *     cc -std=c99 -O2 -o reshape adapters/c/reshape.c && conformance run cmd:./reshape
 *
 * To test a library of your own, keep the protocol (the second half) and replace `settle` and `move` (the first half).
 * An adapter maps, it never repairs: hand the call over as it is, and say what the library says. adapters/README.md
 * describes the protocol. -DBUG=n plants a bug, for the suite's own tests: see the list of them below.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef BUG
#define BUG 0
#endif
enum {
    NONE,
    STRIDES_IGNORED,      /* 1: reads src as if it were dense */
    ZEROS_LITERAL,        /* 2: special_zero is not looked at */
    INFER_FORGETS_COPIES, /* 3: -1 is computed without the copied zeros */
    PRODUCT_WRAPS,        /* 4: volumes are counted in 32 bits */
    NAN_QUIETED,          /* 5: signalling NaNs of f32 become quiet */
    SRC_CHANGED,          /* 6: writes into src */
    EMPTY_CRASHES,        /* 7: divides by the volume, and dies of it */
    DECLARED_BELIEVED,    /* 8: what is declared of the output is not checked */
    TWO_INFERRED,         /* 9: a second -1 is taken for 1 */
    SHAPE_FROZEN,         /* 10: the first shape that arrived at run time is used ever after */
    SHORT_ANSWER,         /* 11: the last element is not moved */
    HANGS_ON_RANK_13      /* 12 */
};

/* ── the backend: what a call means, and how bytes move ────────────────────────────────────────── */

typedef struct {
    int64_t *at;
    size_t rank;
} Dims;

typedef struct {
    const char *type; /* NULL: there is no such operand */
    size_t rank;      /* its own rank: 1 is right for shape */
    int given;        /* whether the values are here; if not, they arrive with run */
    Dims values;
} Operand;

typedef struct {
    int is_static, infer_meets_zero;
    Operand shape, special_zero;
    int declared, knows_rank; /* whether anything is said of the output; whether its rank is */
    const char *declared_type;
    Dims declared_dims; /* INT64_MIN: that length is not known */
    int64_t inputs, outputs;
    int takes_src; /* whether a later node takes src, not the output before it */
} Node;

typedef struct {
    char *type;
    Dims dims, strides;
    unsigned char *memory;
    size_t size, offset;
} Tensor;

static void *room(size_t size) {
    void *got = malloc(size ? size : 1);
    if (!got) {
        fprintf(stderr, "no room for %zu bytes\n", size);
        exit(70);
    }
    return got;
}

static Dims dims_of_rank(size_t rank) {
    Dims dims;
    dims.at = room(rank * sizeof *dims.at);
    dims.rank = rank;
    return dims;
}

/* The same, given back by itself once the request is answered. */
typedef struct Lent {
    struct Lent *before;
} Lent;
static Lent *lent;

static Dims scratch_of_rank(size_t rank) {
    Lent *block = room(sizeof *block + rank * sizeof(int64_t));
    Dims dims;
    block->before = lent;
    lent = block;
    dims.at = (int64_t *)(block + 1);
    dims.rank = rank;
    return dims;
}

static void give_back(void) {
    while (lent) {
        Lent *before = lent->before;
        free(lent);
        lent = before;
    }
}

/* The product of lengths; past 64 bits it stays at the greatest value, which no volume in memory has. */
static uint64_t volume(const int64_t *at, size_t rank) {
    uint64_t product = 1;
    size_t i;
    for (i = 0; i < rank; i++)
        if (at[i] == 0) return 0;
    for (i = 0; i < rank; i++) {
        uint64_t length = (uint64_t)at[i];
        product = product > UINT64_MAX / length ? UINT64_MAX : product * length;
        if (BUG == PRODUCT_WRAPS) product &= UINT32_MAX;
    }
    return product;
}

/* dst, or NULL and why there is none. */
static const char *resolve(Dims src, Dims shape, int special_zero, int infer_meets_zero, Dims *dst) {
    size_t i, infer = shape.rank, inferred = 0, literal = 0;
    uint64_t whole = volume(src.at, src.rank), known;
    Dims out = scratch_of_rank(shape.rank), fixed = scratch_of_rank(shape.rank);
    if (BUG == ZEROS_LITERAL) special_zero = 0;
    fixed.rank = 0;
    for (i = 0; i < shape.rank; i++) {
        int64_t entry = shape.at[i];
        if (entry < -1) return "an entry of shape is below -1, or past 63 bits";
        if (entry == -1 && inferred++ && BUG == TWO_INFERRED) entry = 1;
        literal += entry == 0 && !special_zero;
        if (entry == -1) {
            infer = i;
            continue;
        }
        if (entry == 0 && special_zero) {
            if (i >= src.rank) return "a 0 in shape copies a dimension that src does not have";
            entry = src.at[i];
            if (BUG == INFER_FORGETS_COPIES && src.rank > 1 && shape.at[shape.rank - 1] == -1) {
                out.at[i] = entry;
                continue;
            }
        }
        out.at[i] = fixed.at[fixed.rank++] = entry;
    }
    if (inferred > 1 && BUG != TWO_INFERRED) return "more than one entry of shape is -1";
    if (inferred && literal && !infer_meets_zero) return "shape has a 0 and a -1, and special_zero is false";
    known = volume(fixed.at, fixed.rank);
    if (BUG == EMPTY_CRASHES && !known) abort(); /* a division by zero, said aloud */
    if (inferred) {
        if (known == 0) return whole ? "src is not empty, dst is" : "nothing says which length stands for -1";
        if (whole % known) return "what -1 stands for is no whole number";
        out.at[infer] = (int64_t)(whole / known);
    } else if (known != whole) {
        return "src and dst do not hold equally many elements";
    }
    *dst = out;
    return NULL;
}

static int is_integer(const char *type) {
    return strchr("su", type[0]) && strchr("8136", type[1]);
}

/* Why a node is not written as its operation's signature says. */
static const char *malformed(const Node *node, const char *src_type) {
    if (!node->special_zero.type) return "special_zero is missing";
    if (!node->shape.type) return "shape is missing";
    if (node->inputs != 1) return "one data input is wanted";
    if (node->outputs != 1) return "one output is wanted";
    if (strcmp(node->special_zero.type, "bool")) return "special_zero is no boolean";
    if (node->shape.rank != 1 || !is_integer(node->shape.type)) return "shape is no vector of integers";
    if (node->declared && BUG != DECLARED_BELIEVED && strcmp(node->declared_type, src_type))
        return "src and dst are of different types";
    return NULL;
}

static int agrees(const Node *node, Dims dims) {
    size_t i;
    if (!node->declared || !node->knows_rank || BUG == DECLARED_BELIEVED) return 1;
    if (node->declared_dims.rank != dims.rank) return 0;
    for (i = 0; i < dims.rank; i++)
        if (node->declared_dims.at[i] != INT64_MIN && node->declared_dims.at[i] != dims.at[i]) return 0;
    return 1;
}

static size_t width_of(const char *type) {
    if (!strcmp(type, "bool") || type[1] == '8') return 1;
    return strstr(type, "64") ? 8 : strstr(type, "32") ? 4 : 2;
}

static Dims entries(const Tensor *shape) {
    size_t i, k, width = width_of(shape->type);
    Dims values = scratch_of_rank((size_t)shape->dims.at[0]);
    for (i = 0; i < values.rank; i++) {
        const unsigned char *from = shape->memory + shape->offset + (ptrdiff_t)i * shape->strides.at[0];
        uint64_t bits = 0;
        for (k = width; k-- > 0;) bits = bits << 8 | from[k];
        if (shape->type[0] == 's' && width < 8 && bits >> (8 * width - 1)) bits |= UINT64_MAX << (8 * width);
        values.at[i] = shape->type[0] == 'u' && bits > INT64_MAX ? INT64_MIN : (int64_t)bits; /* no length either way */
    }
    return values;
}

/* The dims of the last node's dst; or why the first node that has none has none. */
static const char *settle(const Node *nodes, size_t count, Dims src, const Tensor *shapes, Dims *dst) {
    size_t k;
    const char *why;
    const Dims first = src;
    for (k = 0; k < count; k++) {
        Dims shape = nodes[k].shape.given ? nodes[k].shape.values : entries(shapes++);
        int special_zero = (int)nodes[k].special_zero.values.at[0];
        if ((why = resolve(nodes[k].takes_src ? first : src, shape, special_zero, nodes[k].infer_meets_zero, &src))) return why;
        if (!agrees(&nodes[k], src)) return "dst is not as it was declared";
    }
    *dst = src;
    return NULL;
}

/* src's elements in row-major order, in memory that has room for dst. */
static unsigned char *move(const Tensor *src, Dims dst, size_t *size) {
    size_t width = width_of(src->type), count = (size_t)volume(src->dims.at, src->dims.rank), n, axis;
    unsigned char *out, *to;
    const unsigned char *from = src->memory + src->offset;
    int64_t *index = room(src->dims.rank * sizeof *index);
    *size = (size_t)volume(dst.at, dst.rank) * width;
    to = out = room(*size);
    if (count * width > *size) count = *size / width; /* where dst is wrong, no more than it holds */
    if (count * width < *size) memset(out, 0, *size);
    if (BUG == STRIDES_IGNORED) {
        memcpy(out, from, src->size - src->offset < *size ? src->size - src->offset : *size);
        free(index);
        return out;
    }
    memset(index, 0, src->dims.rank * sizeof *index);
    for (n = 0; n < count; n++, to += width) {
        memcpy(to, from, width);
        if (BUG == SHORT_ANSWER && n && n + 1 == count) memset(to, 0, width);
        if (BUG == NAN_QUIETED && !strcmp(src->type, "f32") && (to[3] & 0x7f) == 0x7f && to[2] > 0x80) to[2] |= 0x40;
        if (BUG == NAN_QUIETED && !strcmp(src->type, "f32") && (to[3] & 0x7f) == 0x7f && to[2] == 0x80 && (to[0] || to[1]))
            to[2] |= 0x40;
        for (axis = src->dims.rank; axis-- > 0;) {
            from += src->strides.at[axis];
            if (++index[axis] < src->dims.at[axis]) break;
            from -= src->strides.at[axis] * src->dims.at[axis];
            index[axis] = 0;
        }
    }
    free(index);
    return out;
}

/* ── JSON: as much of it as the protocol has ───────────────────────────────────────────────────── */

typedef struct Json Json;
struct Json {
    enum { J_NULL, J_FALSE, J_TRUE, J_NUMBER, J_TEXT, J_LIST, J_OBJECT } kind;
    char *text;  /* of a text; of a number, its digits */
    char *key;   /* inside an object */
    Json *first; /* of a list or an object */
    Json *next;
};

static const char *at;

static void bad(const char *what) {
    fprintf(stderr, "%s at: %.40s\n", what, at);
    exit(65);
}

static void blanks(void) {
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') at++;
}

/* A text; \u escapes are kept as they stand, since nothing here depends on one. */
static char *text(void) {
    const char *begin = ++at;
    char *out, *to;
    while (*at && *at != '"') at += at[0] == '\\' && at[1] ? 2 : 1;
    if (!*at) bad("a text without end");
    to = out = room((size_t)(at - begin) + 1);
    while (begin < at) {
        if (*begin == '\\' && begin[1] != 'u') begin++;
        *to++ = *begin++;
    }
    *to = 0;
    at++;
    return out;
}

static Json *value(int depth) {
    Json *json = room(sizeof *json), **last = &json->first;
    memset(json, 0, sizeof *json);
    blanks();
    if (depth > 64) bad("too deep");
    if (*at == '"') {
        json->kind = J_TEXT;
        json->text = text();
    } else if (*at == '[' || *at == '{') {
        char close = *at == '[' ? ']' : '}';
        json->kind = *at++ == '[' ? J_LIST : J_OBJECT;
        for (blanks(); *at != close; blanks()) {
            char *key = NULL;
            if (json->first && *at++ != ',') bad("a comma is missing");
            blanks();
            if (json->kind == J_OBJECT) {
                if (*at != '"') bad("a key is missing");
                key = text();
                blanks();
                if (*at++ != ':') bad("a colon is missing");
            }
            *last = value(depth + 1);
            (*last)->key = key;
            last = &(*last)->next;
        }
        at++;
    } else if (!strncmp(at, "null", 4)) {
        at += 4;
    } else if (!strncmp(at, "true", 4)) {
        json->kind = J_TRUE;
        at += 4;
    } else if (!strncmp(at, "false", 5)) {
        json->kind = J_FALSE;
        at += 5;
    } else {
        size_t length = strspn(at, "+-.0123456789eENaInfity");
        if (!length) bad("this is no JSON");
        json->kind = J_NUMBER;
        json->text = room(length + 1);
        memcpy(json->text, at, length);
        json->text[length] = 0;
        at += length;
    }
    return json;
}

static void forget(Json *json) {
    while (json) {
        Json *next = json->next;
        forget(json->first);
        free(json->text);
        free(json->key);
        free(json);
        json = next;
    }
}

static const Json *get(const Json *json, const char *key) {
    const Json *each;
    for (each = json && json->kind == J_OBJECT ? json->first : NULL; each; each = each->next)
        if (!strcmp(each->key, key)) return each->kind == J_NULL ? NULL : each;
    return NULL;
}

/* A whole number: large ones come as text, since not every reader has 64 bits. */
static int64_t whole(const Json *json) {
    return !json ? INT64_MIN : json->kind == J_TRUE ? 1 : json->text ? (int64_t)strtoll(json->text, NULL, 10) : 0;
}

static int64_t number(const Json *json, const char *key) { return whole(get(json, key)); }

static char *copied(const Json *json) {
    char *copy;
    if (!json || json->kind != J_TEXT) return NULL;
    copy = room(strlen(json->text) + 1);
    return strcpy(copy, json->text);
}

static Dims numbers(const Json *list) {
    const Json *each;
    size_t rank = 0;
    Dims dims;
    for (each = list ? list->first : NULL; each; each = each->next) rank++;
    dims = dims_of_rank(rank);
    for (rank = 0, each = list ? list->first : NULL; each; each = each->next)
        dims.at[rank++] = each->kind == J_NULL ? INT64_MIN : whole(each);
    return dims;
}

/* ── graphs and programs ───────────────────────────────────────────────────────────────────────── */

typedef struct {
    int64_t number; /* 0: free */
    size_t count;
    Node *nodes;
    Dims frozen;
} Program;

static Program *programs;
static size_t program_slots;

static Program *find(int64_t wanted) {
    size_t i;
    for (i = 0; i < program_slots; i++)
        if (programs[i].number == wanted) return &programs[i];
    return NULL;
}

static void drop(Program *program) {
    size_t k;
    for (k = 0; program && k < program->count; k++) {
        Node *node = &program->nodes[k];
        free((void *)node->shape.type);
        free((void *)node->special_zero.type);
        free((void *)node->declared_type);
        free(node->shape.values.at);
        free(node->special_zero.values.at);
        free(node->declared_dims.at);
    }
    if (!program) return;
    free(program->nodes);
    memset(program, 0, sizeof *program);
}

static Operand operand(const Json *json) {
    Operand out;
    out.type = copied(get(json, "type"));
    out.rank = 0;
    out.given = get(json, "values") != NULL;
    out.values = numbers(get(json, "values"));
    if (get(json, "dims")) {
        Dims dims = numbers(get(json, "dims"));
        out.rank = dims.rank;
        free(dims.at);
    }
    return out;
}

static Node node_of(const Json *json) {
    Node node;
    const Json *result = get(json, "result"), *operation = get(json, "operation");
    node.is_static = operation && !strcmp(operation->text, "StaticReshape");
    node.infer_meets_zero = !node.is_static; /* only StaticReshape's documents forbid a 0 beside a -1 */
    node.shape = operand(get(json, "shape"));
    node.special_zero = operand(get(json, "special_zero"));
    node.declared = result != NULL;
    node.declared_type = copied(get(result, "type"));
    node.knows_rank = get(result, "dims") != NULL;
    node.declared_dims = numbers(get(result, "dims"));
    node.inputs = number(json, "inputs");
    node.outputs = number(json, "outputs");
    node.takes_src = get(json, "takes_src") != NULL;
    return node;
}

/* ── replies ───────────────────────────────────────────────────────────────────────────────────── */

static int64_t asked; /* the id of the request that is being answered */

static void say(const char *form, ...) {
    va_list more;
    printf("{\"id\":%" PRId64 ",", asked);
    va_start(more, form);
    vprintf(form, more);
    va_end(more);
    fputs("}\n", stdout);
}

static void done(void) { say("\"result\":{}"); }
static void refuse(const char *stage, const char *why) { say("\"rejected\":{\"stage\":\"%s\",\"message\":\"%s\"}", stage, why); }
static void fail(const char *why) { say("\"error\":{\"message\":\"%s\"}", why); }

static void print_dims(Dims dims) {
    size_t i;
    for (i = 0; i < dims.rank; i++) printf(i ? ",\"%" PRId64 "\"" : "\"%" PRId64 "\"", dims.at[i]);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────────── */

static void hello(const Json *request) {
    const Json *version = get(request, "protocol");
    if (version && version->kind == J_TEXT && !strcmp(version->text, "reshape-conformance/1"))
        say("\"result\":{\"protocol\":\"reshape-conformance/1\",\"shared_memory\":false,\"takes_src\":true}");
    else
        fail("this program speaks reshape-conformance/1");
}

static void describe(void) {
    say("\"result\":{\"name\":\"reshape.c\",\"version\":\"1\",\"detail\":{\"bug\":\"%d\"},"
        "\"operations\":[\"StaticReshape\",\"DynamicReshape-1\",\"Reshape-1\"],\"leaves_out\":[],\"mapped\":[]}", BUG);
}

static void compile(const Json *request) {
    const Json *graph = get(request, "graph"), *src = get(graph, "src"), *each = get(graph, "nodes");
    const Json *type = get(src, "type");
    const char *why = NULL;
    int all_given = 1;
    size_t k = 0;
    Program made, *slot;
    memset(&made, 0, sizeof made);
    made.number = number(request, "program");
    for (each = each ? each->first : NULL; each; each = each->next) made.count++;
    made.nodes = room(made.count * sizeof *made.nodes);
    for (each = get(graph, "nodes")->first; each; each = each->next) {
        made.nodes[k] = node_of(each);
        all_given &= made.nodes[k++].shape.given;
    }
    for (k = 0; k < made.count && !why; k++) why = malformed(&made.nodes[k], type->text);
    if (!why && all_given && get(src, "dims")) { /* everything is known beforehand: refuse as early as can be */
        Dims dims = numbers(get(src, "dims")), dst;
        int known = 1;
        for (k = 0; k < dims.rank; k++) known &= dims.at[k] != INT64_MIN;
        if (known) why = settle(made.nodes, made.count, dims, NULL, &dst);
        free(dims.at);
    }
    if (why) {
        drop(&made);
        refuse("compile", why);
        return;
    }
    if (!(slot = find(0))) {
        programs = realloc(programs, (program_slots + 64) * sizeof *programs);
        if (!programs) exit(70);
        memset(programs + program_slots, 0, 64 * sizeof *programs);
        slot = programs + program_slots;
        program_slots += 64;
    }
    *slot = made;
    done();
}

static Tensor tensor(const Json *json) {
    Tensor out;
    out.type = copied(get(json, "type"));
    out.dims = numbers(get(json, "dims"));
    out.strides = numbers(get(json, "strides"));
    out.offset = (size_t)number(json, "offset");
    out.size = (size_t)number(json, "bytes");
    out.memory = room(out.size);
    if (fread(out.memory, 1, out.size, stdin) != out.size) exit(65);
    return out;
}

static void run(const Json *request) {
    const Json *list = get(request, "tensors"), *each;
    Program *program = find(number(request, "program"));
    Tensor *tensors;
    unsigned char *before, *answer;
    size_t count = 0, k = 0, size, wrote;
    const char *why;
    Dims dst;
    for (each = list->first; each; each = each->next) count++;
    tensors = room(count * sizeof *tensors);
    for (each = list->first; each; each = each->next) tensors[k++] = tensor(each); /* read them whatever comes of it */
    if (!program || !program->number) {
        fail("there is no such program");
    } else {
        if (BUG == HANGS_ON_RANK_13)
            while (tensors[0].dims.rank == 13) {}
        before = room(tensors[0].size);
        memcpy(before, tensors[0].memory, tensors[0].size);
        if (BUG == SHAPE_FROZEN && count > 1) {
            if (!program->frozen.at) {
                Dims first = entries(&tensors[1]);
                program->frozen = dims_of_rank(first.rank);
                memcpy(program->frozen.at, first.at, first.rank * sizeof *first.at);
            }
            program->nodes[0].shape.values = program->frozen;
            program->nodes[0].shape.given = 1;
        }
        why = settle(program->nodes, program->count, tensors[0].dims, tensors + 1, &dst);
        if (BUG == SRC_CHANGED && tensors[0].size > 128) tensors[0].memory[tensors[0].offset] ^= 1;
        if (why) {
            refuse("run", why);
        } else {
            answer = move(&tensors[0], dst, &size);
            wrote = memcmp(before, tensors[0].memory, tensors[0].size) ? tensors[0].size : 0;
            printf("{\"id\":%" PRId64 ",\"result\":{\"type\":\"%s\",\"dims\":[", asked, tensors[0].type);
            print_dims(dst);
            printf("],\"bytes\":%zu}", size);
            if (wrote) printf(",\"wrote\":[{\"tensor\":0,\"bytes\":%zu}]", wrote);
            fputs("}\n", stdout);
            fwrite(answer, 1, size, stdout);
            fwrite(tensors[0].memory, 1, wrote, stdout); /* an input that was changed is told, and judged */
            free(answer);
        }
        free(before);
    }
    for (k = 0; k < count; k++) {
        free(tensors[k].type);
        free(tensors[k].dims.at);
        free(tensors[k].strides.at);
        free(tensors[k].memory);
    }
    free(tensors);
}

static char *line(void) {
    size_t length = 0, size = 256;
    char *out = room(size);
    int c;
    while ((c = getchar()) != EOF && c != '\n') {
        if (length + 2 > size && !(out = realloc(out, size *= 2))) exit(70);
        out[length++] = (char)c;
    }
    out[length] = 0;
    if (c == EOF) {
        free(out);
        return NULL;
    }
    return out;
}

int main(void) {
    char *said;
    int stopped = 0;
    while (!stopped && (said = line())) {
        Json *request;
        const Json *act;
        const char *what;
        at = said;
        request = value(0);
        act = get(request, "do");
        what = act && act->kind == J_TEXT ? act->text : "";
        asked = number(request, "id");
        if (!strcmp(what, "run")) run(request);
        else if (!strcmp(what, "compile")) compile(request);
        else if (!strcmp(what, "close")) { drop(find(number(request, "program"))); done(); }
        else if (!strcmp(what, "hello")) hello(request);
        else if (!strcmp(what, "describe")) describe();
        else if (!strcmp(what, "stop")) { stopped = 1; done(); }
        else fail("unknown request");
        fflush(stdout);
        give_back();
        forget(request);
        free(said);
    }
    while (program_slots) drop(&programs[--program_slots]);
    free(programs);
    return 0;
}
