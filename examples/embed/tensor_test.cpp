// What a test of the library looks like: a reshape of its own is held against the rules, and a failure names the rule.
#include <cstdlib>

#include <gtest/gtest.h>

#include "tensor.hpp"

namespace {

// The dims that an implementation gives, or nothing if it rejects the call.
using Dims = std::optional<std::vector<std::int64_t>>;

Dims dims_of(const acme::Tensor &src, const std::vector<std::int64_t> &shape, bool special_zero) {
    try {
        return acme::reshape_tensor(src, shape, special_zero).dims;
    } catch (const acme::IllegalReshape &) {
        if (std::getenv("ACCEPTS_EVERY_SHAPE")) return shape; // a mistake, to see what a failure says
        return std::nullopt;
    }
}

struct Call {
    std::vector<std::int64_t> src, shape;
    bool special_zero;
};

void PrintTo(const Call &call, std::ostream *out) {
    *out << "src " << testing::PrintToString(call.src) << ", shape " << testing::PrintToString(call.shape)
         << (call.special_zero ? ", special_zero" : "");
}

class EveryCall : public testing::TestWithParam<Call> {};

TEST_P(EveryCall, IsAnsweredAsTheDocumentSays) {
    const auto &[src, shape, special_zero] = GetParam();
    const auto due = reshape::infer_shape("static-oneapi", src, shape, special_zero);
    const auto found = dims_of({src, {}}, shape, special_zero);
    const auto why = due.dst ? "a legal call" : std::string(due.rule) + ": " + std::string(due.sentence);
    EXPECT_EQ(found, due.dst) << why;
}

INSTANTIATE_TEST_SUITE_P(
    Reshape, EveryCall,
    testing::Values(
        Call{{3, 4, 5}, {0, -1}, true}, Call{{3, 4}, {5, -1}, false}, Call{{2, 3}, {-1, -1}, false},
        Call{{0, 3}, {0, 7}, true}, Call{{1LL << 32, 1LL << 32}, {1}, false}));

TEST(Reshape, SaysWhichRuleACallBreaks) {
    EXPECT_THROW(acme::reshape_tensor({{3, 4}, {}}, {5, -1}, false), acme::IllegalReshape);
    try {
        acme::reshape_tensor({{3, 4}, {}}, {5, -1}, false);
    } catch (const acme::IllegalReshape &error) {
        EXPECT_STREQ(error.what(), "same-volume: dst holds as many elements as src.");
    }
}

} // namespace
