// A library of an imagined maker: tensors of float with a reshape that copies. It infers dst with the generated header.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reshape_meaning.hpp"

namespace acme {

struct Tensor {
    std::vector<std::int64_t> dims;
    std::vector<float> elements;
};

// An error that says which rule of the specification a call breaks.
struct IllegalReshape : std::invalid_argument {
    explicit IllegalReshape(const reshape::Inferred &found)
        : std::invalid_argument(std::string(found.rule) + ": " + std::string(found.sentence)) {}
};

inline Tensor reshape_tensor(const Tensor &src, const std::vector<std::int64_t> &shape, bool special_zero) {
    const auto found = ::reshape::infer_shape("static-oneapi", src.dims, shape, special_zero);
    if (!found.dst) throw IllegalReshape(found);
    return {*found.dst, src.elements};
}

} // namespace acme
