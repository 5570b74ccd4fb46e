/* A backend for `conformance run` in one file of C. It works without any change; what to change is marked CHANGE.
 *
 * Build it with `cc -O2`. Then run `conformance check-adapter cmd:./PROGRAM` and `conformance run cmd:./PROGRAM`.
 * Pass each call to the library as it is, and return its answer as it is: a verdict must be about the library.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CHANGE: your backend. Its claims are text in JSON; name the facets that your library does not support. */
#define NAME "template"
#define VERSION "1"
#define OPERATIONS "[\"StaticReshape\", \"DynamicReshape-1\", \"Reshape-1\"]"
#define NOT_CLAIMED "[\"declared\", \"form\"]"
#define ANSWERS_SPECIAL_ZERO "false" /* true if this file answers it, because the library cannot */

/* ── tensors ── */
typedef struct {
    const char *type; /* f32, bf16, f16, … */
    size_t rank, size;
    int64_t *dims, *strides;      /* strides are in bytes; they may be 0 or negative */
    unsigned char *memory, *data; /* all of its memory, and the element at index 0 in every axis */
    unsigned char *before;        /* of an input: a copy of its memory */
} Tensor;

static void die(const char *why) {
    fprintf(stderr, "adapter: %s\n", why);
    exit(65);
}

typedef union Block { union Block *before; long double aligned; } Block;
static Block *blocks;

/* Memory that is freed when the request is answered. */
static void *room(size_t size) {
    Block *block = size < SIZE_MAX / 2 ? malloc(sizeof *block + size) : NULL;
    if (!block) die("there is not enough memory");
    block->before = blocks;
    blocks = block;
    return block + 1;
}

static void free_room(void) {
    for (Block *block; (block = blocks); free(block)) blocks = block->before;
}

static size_t width_of(const char *type) {
    int bits = strcmp(type, "bool") ? atoi(type + strcspn(type, "0123456789")) : 8;
    if (bits < 8 || bits > 64) die("a tensor has an unknown type");
    return (size_t)bits / 8;
}

/* The number of elements; past 64 bits the largest number, which no tensor in memory has. */
static uint64_t volume(const int64_t *dims, size_t rank) {
    uint64_t product = 1;
    for (size_t i = 0; i < rank; i++) if (!dims[i]) return 0;
    for (size_t i = 0; i < rank; i++)
        product = product > UINT64_MAX / (uint64_t)dims[i] ? UINT64_MAX : product * (uint64_t)dims[i];
    return product;
}

/* A tensor without gaps; its elements are not set. */
static Tensor new_tensor(const char *type, const int64_t *dims, size_t rank) {
    uint64_t step = width_of(type), count = volume(dims, rank);
    if (count > SIZE_MAX / step) die("the answer is too large");
    Tensor out = {type, rank, (size_t)(count * step), room(rank * sizeof *dims), room(rank * sizeof *dims), 0, 0, 0};
    out.memory = out.data = room(out.size);
    for (size_t i = rank; i-- > 0; step *= (uint64_t)dims[i]) {
        out.dims[i] = dims[i];
        out.strides[i] = (int64_t)step;
    }
    return out;
}

/* ── CHANGE: the library. Replace all of this, down to the end of `reshape`, with calls of yours. ── */
/* Set the dims of dst, or return why there are none. */
static const char *find_dims(const char *operation, const Tensor *src, const int64_t *shape, size_t entries,
                             int special_zero, int64_t *dims) {
    size_t infer = entries;
    for (size_t i = 0; i < entries; i++) {
        dims[i] = shape[i] == -1 ? 1 : shape[i];
        if (shape[i] < -1) return "an entry of shape is below -1, or past 63 bits";
        if (shape[i] == -1 && infer < entries) return "more than one entry of shape is -1";
        if (shape[i] == -1) infer = i;
        if (shape[i] || !special_zero) continue;
        if (i >= src->rank) return "a 0 in shape copies a dimension that src does not have";
        dims[i] = src->dims[i];
    }
    for (size_t i = 0; i < entries && infer < entries && !special_zero && !strcmp(operation, "StaticReshape"); i++)
        if (!shape[i]) return "shape has a 0 beside a -1";
    uint64_t count = volume(src->dims, src->rank), known = volume(dims, entries);
    if (infer < entries && known && count % known == 0) dims[infer] = (int64_t)(count / known);
    else if (infer < entries || known != count) return "src and dst do not have equally many elements";
    return NULL;
}

/* Write src's elements in row-major order. */
static void copy_elements(const Tensor *src, unsigned char *to) {
    size_t width = width_of(src->type);
    uint64_t count = volume(src->dims, src->rank);
    int64_t *index = memset(room(src->rank * sizeof *index), 0, src->rank * sizeof *index);
    const unsigned char *from = src->data;
    for (; count; count--, to += width) {
        memcpy(to, from, width);
        for (size_t axis = src->rank; axis-- > 0; index[axis] = 0) {
            if (++index[axis] < src->dims[axis]) {
                from += src->strides[axis];
                break;
            }
            from -= src->strides[axis] * (src->dims[axis] - 1);
        }
    }
}

/* Set dst and return NULL; if the library rejects the call, return its message. */
static const char *reshape(const char *operation, const Tensor *src, const int64_t *shape, size_t entries,
                           int special_zero, Tensor *dst) {
    int64_t *dims = room(entries * sizeof *dims);
    const char *why = find_dims(operation, src, shape, entries, special_zero, dims);
    if (why) return why;
    *dst = new_tensor(src->type, dims, entries);
    copy_elements(src, dst->data);
    return NULL;
}

/* ── JSON: a value is the place in the header where it begins ── */
static const char *blanks(const char *at) { return at + strspn(at, " \t\r\n"); }

/* Return what follows a value. */
static const char *skip(const char *at, int depth) {
    if (depth > 64) die("a header is nested too deeply");
    if (*at == '"') {
        for (at++; *at != '"'; at++)
            if (!*at || (*at == '\\' && !*++at)) die("a text in a header has no end");
        return blanks(at + 1);
    }
    if (*at == '[' || *at == '{') {
        char close = *at == '[' ? ']' : '}';
        for (at = blanks(at + 1); *at != close; at = blanks(at + 1)) {
            if (close == '}') {
                if (*at != '"' || *(at = skip(at, depth)) != ':') die("a key is missing in a header");
                at = blanks(at + 1);
            }
            at = skip(at, depth + 1);
            if (*at == close) break;
            if (*at != ',') die("a comma is missing in a header");
        }
        return blanks(at + 1);
    }
    size_t length = strspn(at, "+-.0123456789EINaefilnrstuy"); /* a number, true, false or null */
    if (!length) die("a header is no JSON");
    return blanks(at + length);
}

/* Return the value of a key; NULL if it is missing or null. */
static const char *get(const char *object, const char *key) {
    size_t length = strlen(key);
    if (!object || *object != '{') return NULL;
    for (const char *at = blanks(object + 1); *at == '"';) {
        int found = !strncmp(at + 1, key, length) && at[length + 1] == '"';
        at = blanks(skip(at, 0) + 1);
        if (found) return *at == 'n' ? NULL : at;
        at = skip(at, 0);
        if (*at == ',') at = blanks(at + 1);
    }
    return NULL;
}

/* Return the value of a key, which begins with this character. */
static const char *need(const char *object, const char *key, char begin) {
    const char *value = get(object, key);
    if (!value || *value != begin) die("a header lacks a key that it must have");
    return value;
}

static const char *first(const char *list) {
    return list && *list == '[' && *blanks(list + 1) != ']' ? blanks(list + 1) : NULL;
}

static const char *next(const char *item) {
    const char *at = skip(item, 0);
    return *at == ',' ? blanks(at + 1) : NULL;
}

/* A whole number, in digits or in text; past 64 bits the smallest, which is no length and no entry either. */
static int64_t whole(const char *at) {
    char *end;
    if (!at) die("a number is missing in a header");
    at += *at == '"';
    errno = 0;
    int64_t number = strtoll(at, &end, 10);
    if (end == at) die("a header has something else where a number was due");
    return errno ? INT64_MIN : number;
}

static size_t length_of(const char *list) {
    size_t length = 0;
    for (const char *item = first(list); item; item = next(item)) length++;
    return length;
}

static int64_t *numbers(const char *list, size_t *count) {
    int64_t *out = room((*count = length_of(list)) * sizeof *out), *to = out;
    for (const char *item = first(list); item; item = next(item)) *to++ = whole(item);
    return out;
}

static char *text(const char *value) {
    size_t length = strcspn(value + 1, "\"");
    char *out = memcpy(room(length + 1), value + 1, length);
    out[length] = 0;
    return out;
}

/* ── the protocol ── */
static FILE *out;  /* the real standard output; what the library prints goes to standard error */
static int64_t id; /* of the request that is being answered */

#define PROTOCOL "reshape-conformance/1"
#define REPLY(...) (fprintf(out, "{\"id\":%" PRId64 ",", id), fprintf(out, __VA_ARGS__), fputs("}\n", out))

/* Return a text as JSON writes it. */
static char *quoted(const char *text) {
    char *json = room(6 * strlen(text) + 1), *to = json;
    for (*to = 0; *text; text++)
        to += sprintf(to, *text < 32 || *text > 126 || strchr("\"\\", *text) ? "\\u%04x" : "%c", (unsigned char)*text);
    return json;
}

/* A program is the text of its graph. */
typedef struct Program {
    struct Program *next;
    int64_t number;
    char graph[];
} Program;
static Program *programs;

static Program **find(int64_t number) {
    Program **place = &programs;
    while (*place && (*place)->number != number) place = &(*place)->next;
    return place;
}

static void close_program(int64_t number) {
    Program **place = find(number), *program = *place;
    if (!program) return;
    *place = program->next;
    free(program);
}

/* Return a facet that the node needs and a call of `reshape` cannot express, or NULL. */
static const char *missing_facet(const char *node) {
    const char *shape = get(node, "shape"), *zero = get(node, "special_zero");
    if (!shape || length_of(get(shape, "dims")) != 1 || !strchr("su", need(shape, "type", '"')[1]) ||
        !zero || !get(zero, "values") || strcmp(text(need(zero, "type", '"')), "bool") ||
        *blanks(need(node, "attributes", '{') + 1) != '}' ||
        whole(get(node, "inputs")) != 1 || whole(get(node, "outputs")) != 1)
        return "form";
    return get(node, "result") ? "declared" : NULL;
}

static void compile(const char *request) {
    const char *graph = need(request, "graph", '{'), *facet = NULL;
    size_t length = (size_t)(skip(graph, 0) - graph);
    for (const char *node = first(need(graph, "nodes", '[')); node && !facet; node = next(node))
        facet = missing_facet(node);
    if (facet) { REPLY("\"unsupported\":{\"feature\":\"%s\"}", facet); return; }
    Program *program = malloc(sizeof *program + length + 1);
    if (!program) die("there is not enough memory");
    program->next = programs;
    program->number = whole(get(request, "program"));
    memcpy(program->graph, graph, length);
    program->graph[length] = 0;
    programs = program;
    REPLY("\"result\":{}");
}

/* Does every element lie inside the tensor's memory? */
static int is_inside(const Tensor *tensor, int64_t size, int64_t offset) {
    int64_t low = offset, high = offset + (int64_t)width_of(tensor->type);
    for (size_t i = 0; i < tensor->rank; i++) {
        int64_t length = tensor->dims[i], stride = tensor->strides[i];
        if (length == 1 || stride == 0) continue;
        if (length < 1 || stride < -size || stride > size || length - 1 > size / llabs(stride)) return 0;
        *(stride < 0 ? &low : &high) += (length - 1) * stride;
    }
    return low >= 0 && high <= size;
}

static Tensor read_tensor(const char *header) {
    Tensor tensor;
    size_t strides;
    int64_t size = whole(get(header, "bytes")), offset = whole(get(header, "offset"));
    tensor.type = text(need(header, "type", '"'));
    tensor.dims = numbers(need(header, "dims", '['), &tensor.rank);
    tensor.strides = numbers(need(header, "strides", '['), &strides);
    if (strides != tensor.rank || size < 0 || offset < 0 || offset > size) die("a tensor's header is wrong");
    tensor.size = (size_t)size;
    tensor.memory = room(tensor.size);
    tensor.data = tensor.memory + offset;
    if (volume(tensor.dims, tensor.rank) && !is_inside(&tensor, size, offset)) die("a tensor reaches past its memory");
    if (fread(tensor.memory, 1, tensor.size, stdin) != tensor.size) die("the input ends inside a tensor");
    tensor.before = memcpy(room(tensor.size), tensor.memory, tensor.size);
    return tensor;
}

/* Return the entries of a shape tensor; an entry past 63 bits becomes the smallest number. */
static int64_t *entries_of(const Tensor *shape, size_t *count) {
    size_t width = width_of(shape->type);
    if (shape->rank != 1) die("a shape tensor is no vector");
    int64_t *out = room((*count = (size_t)shape->dims[0]) * sizeof *out);
    for (size_t i = 0; i < *count; i++) {
        const unsigned char *from = shape->data + (int64_t)i * shape->strides[0];
        uint64_t bits = *shape->type == 's' && from[width - 1] & 0x80 ? UINT64_MAX : 0;
        for (size_t k = width; k-- > 0;) bits = bits << 8 | from[k];
        out[i] = *shape->type == 'u' && bits > INT64_MAX ? INT64_MIN : (int64_t)bits;
    }
    return out;
}

/* Call the library for each node in turn; return its message if it rejects one. */
static const char *call(const char *graph, const Tensor *tensors, size_t count, Tensor *dst) {
    size_t arrived = 1, entries;
    *dst = tensors[0];
    for (const char *node = first(get(graph, "nodes")); node; node = next(node)) {
        const char *values = get(get(node, "shape"), "values"), *takes_src = get(node, "takes_src");
        if (!values && arrived == count) die("a run lacks a shape tensor");
        const int64_t *shape = values ? numbers(values, &entries) : entries_of(&tensors[arrived++], &entries);
        const Tensor src = takes_src && *takes_src == 't' ? tensors[0] : *dst;
        int special_zero = *blanks(get(get(node, "special_zero"), "values") + 1) == 't';
        const char *why = reshape(text(need(node, "operation", '"')), &src, shape, entries, special_zero, dst);
        if (why) return why;
    }
    return NULL;
}

static size_t wrote(const Tensor *in) { return memcmp(in->before, in->memory, in->size) ? in->size : 0; }

/* Reply with dst, or with the message of a rejection; and with the memory of each input that the library wrote into. */
static void answer(const char *why, const Tensor *dst, const Tensor *inputs, size_t count) {
    int any = 0;
    fprintf(out, "{\"id\":%" PRId64 ",", id);
    if (why) fprintf(out, "\"rejected\":{\"stage\":\"run\",\"message\":\"%s\"}", quoted(why));
    else fprintf(out, "\"result\":{\"type\":\"%s\",\"bytes\":%zu,\"dims\":[", dst->type, dst->size);
    for (size_t i = 0; !why && i < dst->rank; i++) fprintf(out, "%s\"%" PRId64 "\"", i ? "," : "", dst->dims[i]);
    fputs(why ? ",\"wrote\":[" : "]},\"wrote\":[", out);
    for (size_t i = 0; i < count; i++)
        if (wrote(&inputs[i]))
            fprintf(out, "%s{\"tensor\":%zu,\"bytes\":%zu}", any++ ? "," : "", i, inputs[i].size);
    fputs("]}\n", out);
    if (!why) fwrite(dst->data, 1, dst->size, out);
    for (size_t i = 0; i < count; i++) fwrite(inputs[i].memory, 1, wrote(&inputs[i]), out);
}

static void run(const char *request) {
    const char *list = need(request, "tensors", '['), *item = first(list);
    const Program *program = *find(whole(get(request, "program")));
    size_t count = length_of(list);
    Tensor *inputs = room(count * sizeof *inputs), dst;
    if (!count) die("a run lacks src");
    for (size_t i = 0; i < count; i++, item = next(item)) inputs[i] = read_tensor(item);
    if (!program) REPLY("\"error\":{\"message\":\"there is no such program\"}");
    else answer(call(program->graph, inputs, count, &dst), &dst, inputs, count);
}

/* Answer a request; return 0 if it is the last. */
static int serve(const char *request) {
    if (*request != '{' || *skip(request, 0)) die("a header is no JSON object");
    const char *act = text(need(request, "do", '"'));
    id = whole(get(request, "id"));
    if (!strcmp(act, "hello") && strcmp(text(need(request, "protocol", '"')), PROTOCOL))
        REPLY("\"error\":{\"message\":\"this program speaks " PROTOCOL "\"}");
    else if (!strcmp(act, "hello"))
        REPLY("\"result\":{\"protocol\":\"" PROTOCOL "\",\"shared_memory\":false,\"takes_src\":true}");
    else if (!strcmp(act, "describe"))
        REPLY("\"result\":{\"name\":\"%s\",\"version\":\"%s\",\"detail\":{},\"operations\":" OPERATIONS
              ",\"not_claimed\":" NOT_CLAIMED ",\"answers_special_zero\":" ANSWERS_SPECIAL_ZERO "}",
              quoted(NAME), quoted(VERSION));
    else if (!strcmp(act, "compile")) compile(request);
    else if (!strcmp(act, "run")) run(request);
    else if (!strcmp(act, "close")) close_program(whole(get(request, "program"))), REPLY("\"result\":{}");
    else if (!strcmp(act, "stop")) REPLY("\"result\":{}");
    else REPLY("\"error\":{\"message\":\"unknown request\"}");
    fflush(out);
    return strcmp(act, "stop");
}

int main(void) {
    char *line = NULL;
    size_t size = 0;
    if (!(out = fdopen(dup(1), "wb")) || dup2(2, 1) < 0) die("standard output cannot be moved away");
    while (getline(&line, &size, stdin) > 0 && serve(blanks(line))) free_room();
    free(line);
    return fclose(out);
}
