// ONNX Runtime Web: its WebAssembly backend, on an ONNX model of each graph.
//
//     npm install --prefix examples/javascript
//     conformance run "cmd:node examples/javascript/onnxruntime-web.mjs"
import { Unsupported, serve } from "../../adapters/javascript/reshape.mjs";
import { OPERATIONS, STRIDED, ask, bytesOf, elementsOf, numbers, typesExcept } from "./shared.mjs";
import * as ort from "onnxruntime-web";

const OPSET = 21, IR_VERSION = 10;
ort.env.wasm.numThreads = 1;

// The number of each type in ONNX; its name in ONNX Runtime Web and its array there, if it has them.
const TYPES = {
  f32: [1, "float32", Float32Array], u8: [2, "uint8", Uint8Array], s8: [3, "int8", Int8Array],
  u16: [4, "uint16", Uint16Array], s16: [5, "int16", Int16Array], s32: [6, "int32", Int32Array],
  s64: [7, "int64", BigInt64Array], string: [8], bool: [9, "bool", Uint8Array], f16: [10, "float16", Uint16Array],
  f64: [11, "float64", Float64Array], u32: [12, "uint32", Uint32Array], u64: [13, "uint64", BigUint64Array], bf16: [16],
};
const TENSOR_TYPES = Object.keys(TYPES).filter((type) => TYPES[type][1]);

// ── models: a message of protocol buffers is a list of fields, each with its number and its value ──

function varint(value) {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(value)), more = true; more; rest >>= 7n) {
    more = rest > 127n;
    bytes.push(Number(rest & 127n) | (more ? 128 : 0));
  }
  return Buffer.from(bytes);
}

const message = (...fields) => Buffer.concat(fields.flatMap(([number, value]) => {
  if (["number", "bigint", "boolean"].includes(typeof value)) return [varint(number * 8), varint(value)];
  const bytes = Buffer.from(value);
  return [varint(number * 8 + 2), varint(bytes.length), bytes];
}));

function declaration(name, { type, dims }) {
  const lengths = dims?.map((length) => [1, message(...(length === null ? [] : [[1, BigInt(length)]]))]);
  const tensor = message([1, TYPES[type][0]], ...(lengths ? [[2, message(...lengths)]] : []));
  return message([1, name], [2, message([1, tensor])]);
}

function constant(name, { type, dims, values }) {
  const fields = [...dims.map((length) => [1, BigInt(length)]), [2, TYPES[type][0]], [8, name]];
  if (type === "string") return message(...fields, ...values.map((value) => [6, String(value)]));
  return message(...fields, [9, rawData(type, values)]);
}

function rawData(type, values) {
  if (type === "bf16") return bytesOf(Uint16Array.from(new Uint32Array(Float32Array.from(values).buffer), (bits) => bits >> 16));
  if (type === "f16") return bytesOf(Uint16Array.from(values, halfBits));
  return bytesOf(TYPES[type][2].from(values, /64$/.test(type) && type !== "f64" ? BigInt : Number));
}

// The bits of a number that is 0, or that f16 holds and is not subnormal there.
function halfBits(value) {
  const size = Math.abs(value), exponent = Math.floor(Math.log2(size));
  return (value < 0 ? 0x8000 : 0) + (size && (exponent + 14 + size / 2 ** exponent) * 1024);
}

function attribute(name, { type, values }) {
  if (!values?.length) throw new Unsupported("form:attributes");
  const [value] = values;
  if (type === "string") return message([1, name], [4, value], [20, 3]);
  if (/^b?f/.test(type)) throw new Unsupported("form:attributes");
  return message([1, name], [3, BigInt(value)], [20, 2]);
}

// `allowzero` is the opposite of special_zero.
function attributes({ special_zero: zero, attributes: extra }) {
  if (zero?.type !== "bool" || !zero.values || Object.hasOwn(extra, "allowzero")) throw new Unsupported("form:attributes");
  const all = { allowzero: { type: "s64", values: [zero.values[0] ? 0 : 1] }, ...extra };
  return Object.entries(all).map(([name, operand]) => [5, attribute(name, operand)]);
}

const node = (operator, inputs, outputs, fields) =>
  [1, message(...inputs.map((name) => [1, name]), ...outputs.map((name) => [2, name]), [4, operator], ...fields)];

// Return the model of a graph. A shape of s32 passes through a Cast, because Reshape takes s64 only.
function modelOf({ src, nodes }) {
  const extra = Array.from({ length: Math.max(...nodes.map(({ inputs }) => inputs)) - 1 }, (_, k) => `extra${k + 1}`);
  const inputs = [["src", src], ...extra.map((name) => [name, src])], fields = [], outputs = [];
  let value = "src", shapeName;
  nodes.forEach((each, number) => {
    const { shape, result } = each, last = number === nodes.length - 1;
    const operands = [each.inputs ? (each.takes_src ? "src" : value) : ""];
    if (shape && !each.shares_shape) {
      shapeName = `shape${number}`;
      if (shape.values) fields.push([5, constant(shapeName, shape)]);
      else inputs.push([shapeName, shape]);
      if (shape.type === "s32") {
        const to = attribute("to", { type: "s64", values: [TYPES.s64[0]] });
        fields.push(node("Cast", [shapeName], [`${shapeName}-s64`], [[5, to]]));
        shapeName += "-s64";
      }
    }
    if (shape) operands.push(shapeName);
    operands.push(...extra.slice(0, Math.max(each.inputs - 1, 0)));
    value = last ? "dst" : `between${number}`;
    const made = [value, ...Array.from({ length: Math.max(each.outputs - 1, 0) }, (_, k) => `more${number}-${k}`)];
    fields.push(node("Reshape", operands, made.slice(0, each.outputs), attributes(each)));
    if (result?.strides) throw new Unsupported("dst-strides");
    // What a fork leaves aside is an output too, or an optimisation would drop its node. An output must have a type.
    if (last ? each.outputs : nodes[number + 1].takes_src) outputs.push([value, result ?? { type: src.type, dims: null }]);
    else if (result) fields.push([13, declaration(value, result)]);
  });
  const declared = [...inputs.map((each) => [11, declaration(...each)]), ...outputs.map((each) => [12, declaration(...each)])];
  return message([1, IR_VERSION], [8, message([1, ""], [2, OPSET])], [7, message([2, "graph"], ...fields, ...declared)]);
}

// ── calls ──

function tensor(given) {
  const { type, dims } = given;
  if (!TENSOR_TYPES.includes(type)) throw new Unsupported(`type:${type}`);
  const [, name, ArrayType] = TYPES[type], elements = elementsOf(given, ArrayType), lengths = numbers(dims);
  return ask(() => new ort.Tensor(name, elements, lengths));
}

// The library makes a tensor of each answer, whose constructor throws a RangeError at a length past 2^31, as one below 0.
function rejectLength(error) {
  throw error instanceof RangeError ? new Error(error.message) : error;
}

async function compile(graph) {
  const model = modelOf(graph), options = { executionProviders: ["wasm"], logSeverityLevel: 4 };
  const session = await ask(() => ort.InferenceSession.create(model, options));
  const own = graph.nodes.filter(({ shape }) => shape && !shape.values).map(({ shares_shape }) => !shares_shape);
  const names = session.inputNames.filter((name) => name.startsWith("shape"));
  return {
    async run(src, shapes) {
      const given = await tensor(src), feeds = {};
      for (const name of session.inputNames) if (!name.startsWith("shape")) feeds[name] = given;
      for (const [k, shape] of shapes.filter((_, k) => own[k]).entries()) feeds[names[k]] = await tensor(shape);
      const { dst } = await ask(() => session.run(feeds).catch(rejectLength));
      const type = TENSOR_TYPES.find((each) => TYPES[each][1] === dst.type);
      return { type, dims: dst.dims.map(BigInt), memory: bytesOf(dst.data) };
    },
    close: () => session.release(),
  };
}

await serve({
  name: "onnxruntime-web",
  version: ort.env.versions.web,
  detail: { node: process.version, backend: "wasm", opset: String(OPSET) },
  operations: OPERATIONS,
  not_claimed: [
    "form:attributes", "threads", "length:2^53", "shape-strides", "dst-strides", ...STRIDED, ...typesExcept(TENSOR_TYPES),
  ],
  answers_special_zero: false,
}, compile);
