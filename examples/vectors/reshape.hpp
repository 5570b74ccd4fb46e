// The reshape of an imagined library, as its maker understands StaticReshape. PLANTED adds one of three mistakes to it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#ifndef PLANTED
#define PLANTED 0
#endif

namespace acme {

using Dims = std::vector<std::int64_t>;
using Bytes = std::vector<std::uint8_t>;

struct Tensor {
    Dims dims;
    Bytes elements;
};

// Return the number of elements, or nothing if it is above `most`.
inline std::optional<std::int64_t> count_elements(const Dims &dims, std::int64_t most) {
    std::int64_t count = 1;
    for (const auto length : dims)
        if (length == 0) return 0;
    for (const auto length : dims) {
        if (PLANTED == 1) { // counts in 32 bits
            count = static_cast<std::uint32_t>(count) * static_cast<std::uint32_t>(length);
        } else {
            if (length > most / count) return std::nullopt;
            count *= length;
        }
    }
    return count;
}

// Return dst, or nothing if the call is illegal.
inline std::optional<Tensor> reshape(const Tensor &src, Dims shape, bool special_zero) {
    const auto count = *count_elements(src.dims, INT64_MAX);
    std::optional<std::size_t> inferred;
    for (std::size_t k = 0; k < shape.size(); ++k) {
        if (shape[k] < -1) return std::nullopt;
        if (shape[k] == 0 && (special_zero || PLANTED == 2)) { // 2: copies although special_zero is false
            if (k >= src.dims.size()) return std::nullopt;
            shape[k] = src.dims[k];
        } else if (shape[k] == -1) {
            if (inferred) return std::nullopt;
            inferred = k;
        }
    }
    if (inferred) {
        shape[*inferred] = 1;
        const auto known = count_elements(shape, count);
        if (known == 0 || (count > 0 && (!known || count % *known))) return std::nullopt;
        shape[*inferred] = count > 0 ? count / *known : 0;
    }
    if (count_elements(shape, count) != count) return std::nullopt;
    auto elements = src.elements;
    if (PLANTED == 3) // quiets a NaN on its way, as a float that is passed by value may be
        for (std::size_t k = 3; k < elements.size(); k += 4)
            if ((elements[k] & 0x7F) == 0x7F && elements[k - 1] > 0x80) elements[k - 1] |= 0x40;
    return Tensor{shape, elements};
}

} // namespace acme
