// Each vector of `conformance export json` is a test of this library: its name is the id of the vector.
#include <cstdlib>

#include <gtest/gtest.h>

#include "reshape.hpp"
#include "reshape_vectors.hpp"

namespace reshape_vectors { // googletest looks for it here

inline void PrintTo(const Test &test, std::ostream *out) {
    *out << "src " << testing::PrintToString(test.src) << ", shape " << testing::PrintToString(test.shape)
         << (test.special_zero ? ", special_zero" : "");
}

} // namespace reshape_vectors

namespace {

using reshape_vectors::Test;

std::vector<Test> tests_of_the_library() {
    const char *folder = std::getenv("RESHAPE_VECTORS");
    std::vector<Test> found;
    for (auto &test : reshape_vectors::read(folder ? folder : "vectors", "static-oneapi"))
        if (test.src_type == "f32" && test.shape_type == "s64") found.push_back(std::move(test)); // what it offers
    return found;
}

class Vector : public testing::TestWithParam<Test> {};

TEST_P(Vector, IsAnsweredAsTheDocumentSays) {
    const auto &test = GetParam();
    const acme::Tensor src{test.src, test.elements()};
    const auto dst = acme::reshape(src, test.shape, test.special_zero);
    std::string why = test.kind + ":";
    for (const auto &rule : test.rules) why += " " + rule;
    if (test.kind == "illegal") {
        EXPECT_FALSE(dst) << why << "; dst " << testing::PrintToString(dst->dims);
    } else if (!dst) {
        EXPECT_TRUE(test.kind == "unspecified" || !test.rules.empty()) << "a legal call is rejected";
    } else {
        ASSERT_EQ(dst->dims.size(), test.dst.size()) << why;
        for (std::size_t k = 0; k < test.dst.size(); ++k)
            EXPECT_EQ(dst->dims[k], test.dst[k].value_or(dst->dims[k])) << why << "; dimension " << k;
        EXPECT_TRUE(dst->elements == src.elements) << "dst has other bytes";
    }
}

INSTANTIATE_TEST_SUITE_P(
    Reshape, Vector, testing::ValuesIn(tests_of_the_library()), [](const auto &each) {
        std::string name = each.param.id;
        for (auto &sign : name) sign = sign == '-' || sign == '.' ? '_' : sign;
        return name;
    });

} // namespace
