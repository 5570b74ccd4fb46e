"""The templates of JavaScript, C++ and Rust."""

from __future__ import annotations

from .emit import Language

JAVASCRIPT = Language(
    file="reshape_meaning.js",
    function="""\
function $name(src, shape, special_zero) {
  let rank, _volume, known, free, unknown, length, other, target, many, quotient, rest, dst = [];
  const broken = [], silent = [], beyond = [];""",
    loops={name: f"{name}($row, ($i, $d) => $keep, ($i, $d) => $value)" for name in ("all", "any", "sum", "product")},
    contains="$row.some((entry) => entry == $value)",
    size="$row.length",
    none="null",
    is_none="($name === null)",
    some="$name",
    is_filled="($name.length > 0)",
    choose="($test ? $value : null)",
    add_rule="$name.push($rule);",
    append="$row.push($value);",
    fill="dst = dst.map((length) => (length === null ? $value : length));",
    for_each="for (const [$i, $d] of $row.entries())",
    give="return { kind: $kind, dst: $dst, rules: $rules };",
    no_dst="null",
    rules="[$rules]",
    multiply="$name *= $value;",
    divide="[quotient, rest] = divide($left, $right);",
    document='"$document": $name,',
    sentence="$rule: $sentence,",
    kinds={kind: f'"{kind}"' for kind in ("legal", "illegal", "unspecified")},
    number="${number}n",
    length="BigInt($value)",
    arithmetic='compute("$sign", $left, $right)',
)


def _cpp_loop(start: str, step: str, end: str) -> str:
    loop = "for (std::int64_t $i = 0; $i < count($row); ++$i)"
    return f"[&] {{ {start}{loop} {{ [[maybe_unused]] const auto $d = entry($row[$i]); {step} }} return {end}; }}()"


CPP = Language(
    file="reshape_meaning.hpp",
    function="""\
inline Meaning $name(const Row &src, const Row &shape, bool special_zero) {
    [[maybe_unused]] std::int64_t rank = 0, free = 0;
    Product _volume, known, target, quotient;
    Length length, other;
    [[maybe_unused]] bool unknown = false, many = false, rest = false;
    std::vector<std::optional<Product>> dst;
    std::vector<std::string_view> broken, silent, beyond;""",
    loops={
        "all": _cpp_loop("", "if (($keep) && !($value)) return false;", "true"),
        "any": _cpp_loop("", "if (($keep) && ($value)) return true;", "false"),
        "sum": _cpp_loop("std::int64_t total = 0; ", "if ($keep) total += ($value);", "total"),
        "product": _cpp_loop("Product total; ", "if ($keep) total *= ($value);", "total"),
    },
    contains="contains($row, $value)",
    size="count($row)",
    none="Length()",
    is_none="!$name.is_known",
    some="$name.value",
    is_filled="(!$name.empty())",
    choose="($test ? Length($value) : Length())",
    add_rule="$name.push_back($rule);",
    append="$row.push_back($value.is_known ? std::optional<Product>($value.value) : std::nullopt);",
    fill="for (auto &each : dst) { if (!each) each = $value; }",
    for_each="for (std::int64_t $i = 0, $d = 0; $i < count($row) && ($d = $row[$i], true); ++$i)",
    give="return result($kind, $dst, $rules);",
    no_dst="{}",
    rules="{$rules}",
    multiply="$name *= $value;",
    divide="std::tie(quotient, rest) = Product::divide($left, $right);",
    document='{"$document", $name},',
    sentence="{$rule, $sentence},",
    kinds={kind: f"Kind::{kind}" for kind in ("legal", "illegal", "unspecified")},
)

_RUST_ROW = "$row.iter().enumerate().map(|($i, $d)| ($i as i64, $d.entry()))"
RUST = Language(
    file="reshape_meaning.rs",
    function="""\
fn $name(src: &[i64], shape: &[i64], special_zero: bool) -> Meaning {
    let (mut rank, mut free, mut unknown, mut many, mut rest) = (0i64, 0i64, false, false, false);
    let mut _volume = Product::from(1);
    let (mut known, mut target, mut quotient) = (_volume.clone(), _volume.clone(), _volume.clone());
    let (mut length, mut other): (Option<i64>, Option<i64>) = (None, None);
    let mut dst: Vec<Option<Product>> = Vec::new();
    let (mut broken, mut silent, mut beyond): (Vec<&str>, Vec<&str>, Vec<&str>) = (vec![], vec![], vec![]);""",
    loops={
        "all": f"{_RUST_ROW}.all(|($i, $d)| !($keep) || ($value))",
        "any": f"{_RUST_ROW}.any(|($i, $d)| ($keep) && ($value))",
        "sum": f"{_RUST_ROW}.fold(0i64, |total, ($i, $d)| total + ((($keep) && ($value)) as i64))",
        "product": f"{_RUST_ROW}.fold(Product::from(1), |mut total, ($i, $d)| {{ "
        "if $keep { total.multiply(Product::from($value)); } total })",
    },
    contains="$row.contains(&($value))",
    size="($row.len() as i64)",
    none="None",
    is_none="$name.is_none()",
    some="$name.unwrap_or(0)",
    is_filled="(!$name.is_empty())",
    choose="(if $test { Some($value) } else { None })",
    add_rule="$name.push($rule);",
    append="$row.push($value.map(Product::from));",
    fill="dst.iter_mut().filter(|each| each.is_none()).for_each(|each| *each = Some($value.clone()));",
    for_each="for ($i, $d) in $row.iter().enumerate().map(|($i, $d)| ($i as i64, *$d))",
    give="return result($kind, &$dst, &$rules);",
    no_dst="[]",
    rules="[$rules]",
    multiply="$name.multiply(Product::from($value));",
    divide="(quotient, rest) = Product::divide($left.clone(), $right.clone());",
    document='"$document" => Ok($name(src, shape, special_zero)),',
    sentence="($rule, $sentence),",
    kinds={"legal": "Kind::Legal", "illegal": "Kind::Illegal", "unspecified": "Kind::Unspecified"},
    subscript="$row[$index as usize]",
    assign={"known": "known = Product::from($value);", "target": "target = $value.clone();"},
    length="Some($value)",
)
LANGUAGES = {"javascript": JAVASCRIPT, "cpp": CPP, "rust": RUST}
