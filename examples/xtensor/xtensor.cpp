// xtensor, a library of arrays in C++. The Makefile puts this file into the template adapters/cpp/reshape.cpp, where that has
// its own library, so that it uses Tensor, Dims, Rejected and copy_elements of the template.
#include <xtensor/xarray.hpp>

const std::string name = "xtensor";
const std::string version = std::to_string(XTENSOR_VERSION_MAJOR) + "." + std::to_string(XTENSOR_VERSION_MINOR) + "." +
                            std::to_string(XTENSOR_VERSION_PATCH);
const std::string operations = R"(["StaticReshape", "DynamicReshape-1", "Reshape-1"])";
const std::string not_claimed = R"(["declared", "form", "threads"])";
const bool answers_special_zero = true;

// The entry that the library is given, where shape has one past 63 bits: a signed integer of C++ cannot have that value.
[[noreturn]] std::int64_t entry_past_63_bits() { throw Rejected("an entry of shape has more than 63 bits"); }

template <class Element> Tensor reshape_as(const Tensor &src, const Dims &shape) {
    xt::xarray<Element> array(typename xt::xarray<Element>::shape_type(src.dims.begin(), src.dims.end()));
    if (!src.memory.empty()) copy_elements(src, reinterpret_cast<unsigned char *>(array.data()));
    try {
        array.reshape(shape);
    } catch (const std::runtime_error &why) {
        throw Rejected(why.what());
    }
    // After some illegal calls the dims promise more elements than the array has; then there is nothing to read.
    const Dims dims(array.shape().begin(), array.shape().end());
    const bool is_whole = std::none_of(dims.begin(), dims.end(), [](auto length) { return length < 0; }) &&
                          volume(dims) <= array.size();
    Tensor dst = is_whole ? new_tensor(src.type, dims) : Tensor{src.type, dims, Dims(dims.size()), {}};
    if (!dst.memory.empty()) std::memcpy(dst.memory.data(), array.data(), dst.memory.size());
    return dst;
}

Tensor reshape(const std::string &, const Tensor &src, const Dims &shape, bool special_zero) {
    Dims entries = shape;  // the library has no special_zero, so the zeros that copy are answered here
    for (std::size_t i = 0; special_zero && i < std::min(entries.size(), src.dims.size()); i++)
        if (entries[i] == 0) entries[i] = src.dims[i];
    if (src.type == "bool") return reshape_as<bool>(src, entries);
    if (src.type == "f32") return reshape_as<float>(src, entries);
    if (src.type == "f64") return reshape_as<double>(src, entries);
    switch (width_of(src.type)) {  // the sign of an integer makes no difference, and C++17 has no type for f16 and bf16
    case 1: return reshape_as<std::uint8_t>(src, entries);
    case 2: return reshape_as<std::uint16_t>(src, entries);
    case 4: return reshape_as<std::uint32_t>(src, entries);
    default: return reshape_as<std::uint64_t>(src, entries);
    }
}
