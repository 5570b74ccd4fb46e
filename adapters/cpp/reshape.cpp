// A backend for `conformance run` in one file of C++17. It works without any change; what to change is marked CHANGE.
//
// Build it with `c++ -std=c++17 -O2`. Then run `conformance check-adapter cmd:./PROGRAM` and
// `conformance run cmd:./PROGRAM`.
// Pass each call to the library as it is, and return its answer as it is: a verdict must be about the library.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

// CHANGE: your backend. Its claims are text in JSON; name the facets that your library does not support.
const std::string name = "template";
const std::string version = "1";
const std::string operations = R"(["StaticReshape", "DynamicReshape-1", "Reshape-1"])";
const std::string not_claimed = R"(["declared", "form"])";
const bool answers_special_zero = false;  // true if this file answers it, because the library cannot

// ── tensors ──
using Dims = std::vector<std::int64_t>;

struct Tensor {
    std::string type;  // f32, bf16, f16, …
    Dims dims, strides;  // strides are in bytes; they may be 0 or negative
    std::vector<unsigned char> memory;
    std::size_t offset = 0;  // of the element at index 0 in every axis

    const unsigned char *data() const { return memory.data() + offset; }
};

struct Rejected : std::runtime_error {  // throw it if the library rejects a call
    using std::runtime_error::runtime_error;
};

struct Fault : std::runtime_error {  // what was received cannot be read
    using std::runtime_error::runtime_error;
};

std::size_t width_of(const std::string &type) {
    const auto digits = type.find_first_of("0123456789");
    const int bits = type == "bool" ? 8 : digits == std::string::npos ? 0 : std::atoi(type.c_str() + digits);
    if (bits < 8 || bits > 64) throw Fault("a tensor has the unknown type " + type);
    return static_cast<std::size_t>(bits) / 8;
}

// The number of elements; past 64 bits the largest number, which no tensor in memory has.
std::uint64_t volume(const Dims &dims) {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t product = 1;
    if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
    for (const auto length : dims) {
        const auto factor = static_cast<std::uint64_t>(length);
        product = product > most / factor ? most : product * factor;
    }
    return product;
}

// A tensor of zeros without gaps.
Tensor new_tensor(const std::string &type, const Dims &dims) {
    const std::uint64_t width = width_of(type), count = volume(dims);
    if (count > std::numeric_limits<std::ptrdiff_t>::max() / width) throw Fault("the answer is too large");
    Tensor out{type, dims, Dims(dims.size()), std::vector<unsigned char>(count * width)};
    std::uint64_t step = width;
    for (auto axis = dims.size(); axis-- > 0; step *= static_cast<std::uint64_t>(dims[axis]))
        out.strides[axis] = static_cast<std::int64_t>(step);
    return out;
}

// ── CHANGE: the library. Replace all of this, down to the end of `reshape`, with calls of yours. ──
Dims find_dims(const std::string &operation, const Dims &src, const Dims &shape, bool special_zero) {
    Dims dst = shape;
    for (std::size_t i = 0; i < shape.size(); i++) {
        if (shape[i] < -1) throw Rejected("an entry of shape is below -1, or past 63 bits");
        if (shape[i] || !special_zero) continue;
        if (i >= src.size()) throw Rejected("a 0 in shape copies a dimension that src does not have");
        dst[i] = src[i];
    }
    const auto inferred = std::count(shape.begin(), shape.end(), -1), zeros = std::count(shape.begin(), shape.end(), 0);
    if (inferred > 1) throw Rejected("more than one entry of shape is -1");
    if (inferred && zeros && !special_zero && operation == "StaticReshape") throw Rejected("shape has a 0 beside a -1");
    const auto infer = std::find(dst.begin(), dst.end(), -1);
    if (inferred) *infer = 1;
    const auto count = volume(src), known = volume(dst);
    if (inferred && known && count % known == 0) *infer = static_cast<std::int64_t>(count / known);
    else if (inferred || known != count) throw Rejected("src and dst do not have equally many elements");
    return dst;
}

// Write src's elements in row-major order.
void copy_elements(const Tensor &src, unsigned char *to) {
    const auto width = width_of(src.type);
    Dims index(src.dims.size());
    const unsigned char *from = src.data();
    for (auto count = volume(src.dims); count; count--, to += width) {
        std::memcpy(to, from, width);
        for (auto axis = index.size(); axis-- > 0; index[axis] = 0) {
            if (++index[axis] < src.dims[axis]) {
                from += src.strides[axis];
                break;
            }
            from -= src.strides[axis] * (src.dims[axis] - 1);
        }
    }
}

// Return dst, a tensor without gaps.
Tensor reshape(const std::string &operation, const Tensor &src, const Dims &shape, bool special_zero) {
    Tensor dst = new_tensor(src.type, find_dims(operation, src.dims, shape, special_zero));
    copy_elements(src, dst.memory.data());
    return dst;
}

// ── JSON ──
struct Json {
    enum { null, boolean, number, text, list, object } kind = null;
    std::string key;    // in an object
    std::string value;  // of a text; digits of a number; true or false
    std::vector<Json> items;

    // The value of a key; null if there is none.
    const Json &operator[](const std::string &wanted) const {
        static const Json nothing;
        for (const auto &item : items)
            if (kind == object && item.key == wanted) return item;
        return nothing;
    }

    const std::vector<Json> &as_list() const {
        if (kind != list) throw Fault("a header lacks a list");
        return items;
    }

    const std::string &as_text() const {
        if (kind != text) throw Fault("a header lacks a text");
        return value;
    }

    // A whole number, in digits or in text; past 64 bits the smallest, which is no length and no entry either.
    std::int64_t as_number() const {
        try {
            return std::stoll(kind == number || kind == text ? value : "");
        } catch (const std::out_of_range &) {
            return std::numeric_limits<std::int64_t>::min();
        } catch (const std::invalid_argument &) {
            throw Fault("a header lacks a number");
        }
    }

    Dims as_numbers() const {
        Dims out;
        for (const auto &item : as_list()) out.push_back(item.as_number());
        return out;
    }
};

class Reader {
public:
    explicit Reader(const std::string &line) : at(line.c_str()), end(at + line.size()) {}

    Json read() {
        Json json = read_value(0);
        if (at != end || json.kind != Json::object) throw Fault("a header is no JSON object");
        return json;
    }

private:
    const char *at, *end;

    void skip_blanks() { at += std::strspn(at, " \t\r\n"); }

    bool take(char wanted) {
        skip_blanks();
        if (*at != wanted) return false;
        at++;
        skip_blanks();
        return true;
    }

    // Texts that matter have no escapes: one that has some keeps them unread.
    std::string read_text() {
        const char *begin = at;
        for (; *at != '"'; at++)
            if (!*at || (*at == '\\' && !*++at)) throw Fault("a text in a header has no end");
        std::string text(begin, at);
        take('"');
        return text;
    }

    Json read_value(int depth) {
        Json json;
        if (depth > 64) throw Fault("a header is nested too deeply");
        if (take('"')) {
            json.kind = Json::text;
            json.value = read_text();
        } else if (take('[')) {
            json.kind = Json::list;
            read_items(json, ']', depth);
        } else if (take('{')) {
            json.kind = Json::object;
            read_items(json, '}', depth);
        } else {
            json.value.assign(at, std::strspn(at, "+-.0123456789EINaefilnrstuy"));
            if (json.value.empty()) throw Fault("a header is no JSON");
            at += json.value.size();
            skip_blanks();
            const bool flag = json.value == "true" || json.value == "false";
            json.kind = json.value == "null" ? Json::null : flag ? Json::boolean : Json::number;
        }
        return json;
    }

    void read_items(Json &json, char close, int depth) {
        while (!take(close)) {
            std::string key;
            if (!json.items.empty() && !take(',')) throw Fault("a comma is missing in a header");
            if (json.kind == Json::object) {
                if (!take('"')) throw Fault("a key is missing in a header");
                key = read_text();
                if (!take(':')) throw Fault("a colon is missing in a header");
            }
            json.items.push_back(read_value(depth + 1));
            json.items.back().key = key;
        }
    }
};

// Return a text as JSON writes it.
std::string quoted(const std::string &text) {
    std::string json = "\"";
    for (const unsigned char c : text) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, c < 32 || c > 126 || c == '"' || c == '\\' ? "\\u%04x" : "%c", c);
        json += escaped;
    }
    return json + "\"";
}

// ── the protocol ──
const std::string protocol = "reshape-conformance/1";
std::map<std::int64_t, Json> programs;  // graphs, by their numbers

struct Reply {
    std::string json;
    std::vector<std::vector<unsigned char>> payload = {};  // the bytes that follow
};

Reply rejection(const std::string &why) { return {"\"rejected\":{\"stage\":\"run\",\"message\":" + quoted(why) + "}"}; }
Reply error(const std::string &why) { return {"\"error\":{\"message\":" + quoted(why) + "}"}; }

// Return a facet that the node needs and a call of `reshape` cannot express, or nothing.
std::string missing_facet(const Json &node) {
    const Json &shape = node["shape"], &zero = node["special_zero"];
    const bool is_plain = shape["dims"].items.size() == 1 && shape["type"].as_text().find_first_of("su") == 0 &&
                          zero["type"].value == "bool" && zero["values"].items.size() == 1 &&
                          node["attributes"].items.empty() && node["inputs"].as_number() == 1 &&
                          node["outputs"].as_number() == 1;
    return !is_plain ? "form" : node["result"].kind != Json::null ? "declared" : "";
}

Reply compile(const Json &request) {
    for (const auto &node : request["graph"]["nodes"].as_list())
        if (const auto facet = missing_facet(node); !facet.empty())
            return {"\"unsupported\":{\"feature\":" + quoted(facet) + "}"};
    programs[request["program"].as_number()] = request["graph"];
    return {"\"result\":{}"};
}

// Does every element lie inside the tensor's memory?
bool is_inside(const Tensor &tensor) {
    const auto size = static_cast<std::int64_t>(tensor.memory.size());
    auto low = static_cast<std::int64_t>(tensor.offset), high = low + static_cast<std::int64_t>(width_of(tensor.type));
    for (std::size_t i = 0; i < tensor.dims.size(); i++) {
        const auto length = tensor.dims[i], stride = tensor.strides[i];
        if (length == 1 || stride == 0) continue;
        if (length < 1 || stride < -size || stride > size || length - 1 > size / std::abs(stride)) return false;
        (stride < 0 ? low : high) += (length - 1) * stride;
    }
    return low >= 0 && high <= size;
}

Tensor read_tensor(const Json &header) {
    const auto size = header["bytes"].as_number(), offset = header["offset"].as_number();
    Tensor tensor{header["type"].as_text(), header["dims"].as_numbers(), header["strides"].as_numbers(), {}};
    if (size < 0 || offset < 0 || offset > size || tensor.dims.size() != tensor.strides.size())
        throw Fault("a tensor's header is wrong");
    tensor.memory.resize(static_cast<std::size_t>(size));
    tensor.offset = static_cast<std::size_t>(offset);
    if (volume(tensor.dims) && !is_inside(tensor)) throw Fault("a tensor reaches past its memory");
    std::cin.read(reinterpret_cast<char *>(tensor.memory.data()), size);
    if (!std::cin) throw Fault("the input ends inside a tensor");
    return tensor;
}

// Return the entries of a shape tensor; an entry past 63 bits becomes the smallest number.
Dims entries_of(const Tensor &shape) {
    const auto width = width_of(shape.type);
    if (shape.dims.size() != 1) throw Fault("a shape tensor is no vector");
    Dims entries;
    for (std::int64_t i = 0; i < shape.dims[0]; i++) {
        const unsigned char *from = shape.data() + i * shape.strides[0];
        std::uint64_t bits = shape.type[0] == 's' && from[width - 1] & 0x80 ? ~std::uint64_t{0} : 0;
        for (auto k = width; k-- > 0;) bits = bits << 8 | from[k];
        entries.push_back(shape.type[0] == 'u' && bits >> 63 ? std::numeric_limits<std::int64_t>::min()
                                                             : static_cast<std::int64_t>(bits));
    }
    return entries;
}

// Call the library for each node in turn.
Tensor call(const Json &graph, const std::vector<Tensor> &inputs) {
    const Tensor *src = &inputs.at(0);
    Tensor dst;
    std::size_t arrived = 1;
    for (const auto &node : graph["nodes"].as_list()) {
        const Json &values = node["shape"]["values"];
        const Dims shape = values.kind == Json::null ? entries_of(inputs.at(arrived++)) : values.as_numbers();
        const bool takes_src = node["takes_src"].value == "true";
        const bool special_zero = node["special_zero"]["values"].items.at(0).value == "true";
        dst = reshape(node["operation"].as_text(), takes_src ? inputs[0] : *src, shape, special_zero);
        src = &dst;
    }
    return dst;
}

Reply answer(const Tensor &dst) {
    std::string dims;
    for (const auto length : dst.dims) dims += (dims.empty() ? "\"" : ",\"") + std::to_string(length) + "\"";
    const auto bytes = std::to_string(dst.memory.size());
    return {"\"result\":{\"type\":" + quoted(dst.type) + ",\"bytes\":" + bytes + ",\"dims\":[" + dims + "]}",
            {dst.memory}};
}

Reply run(const Json &request) {
    std::vector<Tensor> inputs;
    for (const auto &header : request["tensors"].as_list()) inputs.push_back(read_tensor(header));
    const auto before = inputs;
    const auto program = programs.find(request["program"].as_number());
    if (program == programs.end()) return error("there is no such program");
    Reply reply;
    try {
        reply = answer(call(program->second, inputs));
    } catch (const Rejected &why) {
        reply = rejection(why.what());
    } catch (const std::exception &why) {  // an error of this file, unless the library asked for too much memory
        if (dynamic_cast<const std::bad_alloc *>(&why)) throw;
        reply = error(why.what());
    }
    std::string wrote;
    for (std::size_t i = 0; i < inputs.size(); i++) {
        if (inputs[i].memory == before[i].memory) continue;  // the library wrote nothing into it
        wrote += (wrote.empty() ? "" : ",") + ("{\"tensor\":" + std::to_string(i)) +
                 ",\"bytes\":" + std::to_string(inputs[i].memory.size()) + "}";
        reply.payload.push_back(inputs[i].memory);
    }
    reply.json += ",\"wrote\":[" + wrote + "]";
    return reply;
}

Reply perform(const Json &request) try {
    const auto &act = request["do"].as_text();
    if (act == "hello" && request["protocol"].value != protocol) return error("this program speaks " + protocol);
    if (act == "hello")
        return {"\"result\":{\"protocol\":" + quoted(protocol) + ",\"shared_memory\":false,\"takes_src\":true}"};
    if (act == "describe")
        return {"\"result\":{\"name\":" + quoted(name) + ",\"version\":" + quoted(version) + ",\"detail\":{}" +
                ",\"operations\":" + operations + ",\"not_claimed\":" + not_claimed +
                ",\"answers_special_zero\":" + (answers_special_zero ? "true" : "false") + "}"};
    if (act == "compile") return compile(request);
    if (act == "run") return run(request);
    if (act == "close") programs.erase(request["program"].as_number());
    if (act == "close" || act == "stop") return {"\"result\":{}"};
    return error("unknown request " + act);
} catch (const Rejected &why) {
    return rejection(why.what());
}

int main() try {
    std::FILE *out = fdopen(dup(1), "wb");  // what the library prints goes to standard error
    if (!out || dup2(2, 1) < 0) throw Fault("standard output cannot be moved away");
    std::ios::sync_with_stdio(false);
    for (std::string line; std::getline(std::cin, line);) {
        const Json request = Reader(line).read();
        const Reply reply = perform(request);
        std::fprintf(out, "{\"id\":%lld,%s}\n", static_cast<long long>(request["id"].as_number()), reply.json.c_str());
        for (const auto &bytes : reply.payload)
            if (!bytes.empty()) std::fwrite(bytes.data(), 1, bytes.size(), out);
        std::fflush(out);
        if (request["do"].value == "stop") break;
    }
} catch (const std::exception &why) {
    std::cerr << "adapter: " << why.what() << "\n";
    return 65;
}
