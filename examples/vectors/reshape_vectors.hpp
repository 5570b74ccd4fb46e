// Reads the folder that `conformance export json` writes. C++17, no other library. Errors are exceptions of std.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace reshape_vectors {

// A JSON value: `text` of a string, a number or a word (true, false, null), the `items` of an array, or the `members`.
struct Json {
    std::string text;
    std::vector<Json> items;
    std::map<std::string, Json> members;

    const Json &operator[](const std::string &name) const { return members.at(name); }
    bool has(const std::string &name) const { return members.count(name) > 0; }
    // A number below 0, and an entry of u64 from 2^63 on, keep their 64 bits.
    std::int64_t number() const { return static_cast<std::int64_t>(word()); }
    std::uint64_t word(int base = 10) const { return std::stoull(text, nullptr, base); }
};

class Parser {
public:
    explicit Parser(const std::string &json) : json_(json) {}

    Json value() {
        Json made;
        const char first = next();
        if (first == '"') {
            made.text = string();
        } else if (first == '[') {
            for (++at_; next() != ']'; skip(',')) made.items.push_back(value());
            skip(']');
        } else if (first == '{') {
            for (++at_; next() != '}'; skip(',')) {
                const std::string name = string();
                skip(':');
                made.members.emplace(name, value());
            }
            skip('}');
        } else {
            const auto end = json_.find_first_of(",]} \n", at_);
            if (end == at_) throw std::runtime_error("no JSON at byte " + std::to_string(at_));
            made.text = json_.substr(at_, end - at_);
            at_ += made.text.size();
        }
        return made;
    }

private:
    char next() {
        at_ = json_.find_first_not_of(" \n", at_);
        if (at_ == std::string::npos) throw std::runtime_error("the JSON ends too early");
        return json_[at_];
    }

    void skip(char sign) {
        if (next() == sign) ++at_;
    }

    std::string string() { // an escape stays as it is: only texts for people have any
        const auto begin = ++at_;
        while (at_ < json_.size() && json_[at_] != '"') at_ += json_[at_] == '\\' ? 2 : 1;
        return json_.substr(begin, at_++ - begin);
    }

    const std::string &json_;
    std::size_t at_ = 0;
};

// A call, and what one document says of it: `kind` is legal, illegal or unspecified.
struct Test {
    std::string id, src_type, shape_type, kind;
    std::vector<std::int64_t> src, shape;
    bool special_zero;
    std::vector<std::optional<std::int64_t>> dst; // without a length if the document decides none; illegal: empty
    std::vector<std::string> rules;               // legal: those that let an implementation reject the call
    Json contents, type;                          // how elements are made: of this test, and of this type

    // The elements of src, little-endian, which are those of each right dst.
    std::vector<std::uint8_t> elements() const {
        const auto of_scramble = [&](const char *name) { return type["scramble"][name].word(); };
        const auto places = of_scramble("places"), jump = of_scramble("jump"), fine = of_scramble("fine");
        const auto low = of_scramble("low"), positive = of_scramble("positive"), gap = of_scramble("gap");
        const auto low_bits = (std::uint64_t{1} << fine) - 1, spread = std::uint64_t{0x9E3779B97F4A7C15};
        const auto width = type["width"].word(), seed = contents["seed"].word();
        const std::string bits = contents.has("bits") ? contents["bits"].text : "";
        std::vector<std::uint64_t> cycle; // words that occur over and over
        std::istringstream listed(bits == "all" || bits == "edges" ? "" : bits);
        for (Json each; listed >> each.text;) cycle.push_back(each.word(16));
        for (const auto &each : type["edges"].items)
            if (bits == "edges") cycle.push_back(each.word());
        std::uint64_t count = 1;
        for (const auto length : src) count *= static_cast<std::uint64_t>(length);
        std::vector<std::uint8_t> made(count * width);
        for (std::uint64_t k = 0; k < count; ++k) {
            std::uint64_t word = k; // of all bits
            if (!cycle.empty()) word = cycle[((bits == "edges" ? seed : 0) + k) % cycle.size()];
            if (bits.empty()) { // a scramble; products wrap at 2^64
                const auto turn = (seed + k) / places, place = (seed + k) % places;
                const auto at = place * jump % places << fine;
                word = low + at + (at < positive ? 0 : gap);
                if (fine) word ^= place * spread >> (64 - fine) ^ (turn * spread & low_bits);
            }
            for (std::uint64_t byte = 0; byte < width; ++byte)
                made[k * width + byte] = static_cast<std::uint8_t>(word >> 8 * byte);
        }
        return made;
    }
};

inline Json read_json(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + " cannot be read");
    const std::string json{std::istreambuf_iterator<char>(file), {}};
    return Parser(json).value();
}

// Return all tests of a folder of which a document says something.
inline std::vector<Test> read(const std::string &folder, const std::string &document) {
    std::vector<Test> found;
    const Json index = read_json(folder + "/index.json");
    for (const auto &[name, facts] : index["files"].members) {
        if (facts["tests"].text == "0") continue; // the schema
        const Json rule = read_json(folder + "/" + name);
        for (const auto &test : rule["tests"].items) {
            if (!test["documents"].has(document)) continue;
            const auto &src = test["src"], &shape = test["shape"], &said = test["documents"][document];
            Test made{test["id"].text, src["type"].text, shape["type"].text, said["kind"].text, {}, {},
                      test["special_zero"].text == "true", {}, {}, test["contents"], index["types"][src["type"].text]};
            for (const auto &each : src["dims"].items) made.src.push_back(each.number());
            for (const auto &each : shape["values"].items) made.shape.push_back(each.number());
            for (const auto &each : said["rules"].items) made.rules.push_back(each.text);
            for (const auto &each : said["dst"].items)
                made.dst.push_back(each.text == "null" ? std::nullopt : std::optional(each.number()));
            found.push_back(std::move(made));
        }
    }
    return found;
}

} // namespace reshape_vectors
