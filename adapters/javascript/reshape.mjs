// A backend in Node, as short as it can be: `conformance run cmd:'node adapters/javascript/reshape.mjs'`.
// To test a library of your own, replace `settle` and `move`; adapters/README.md describes the protocol.
import { readSync, writeSync } from "node:fs";

// ── the backend ──
const volume = (dims) => dims.reduce((a, b) => a * b, 1n);
const refuse = (stage, message) => { throw { rejected: { stage, message } }; };

function settle(src, shape, specialZero, inferMeetsZero) {
  if (shape.some((n) => n < -1n)) refuse("run", "an entry of shape is below -1");
  if (shape.filter((n) => n === -1n).length > 1) refuse("run", "more than one entry of shape is -1");
  if (!specialZero && !inferMeetsZero && shape.includes(0n) && shape.includes(-1n)) refuse("run", "a 0 beside a -1");
  const dst = shape.map((n, i) => (n === 0n && specialZero ? src[i] ?? refuse("run", "src has no such dimension") : n));
  const infer = dst.indexOf(-1n), known = volume(dst.filter((n) => n !== -1n)), whole = volume(src);
  if (infer >= 0 && known !== 0n && whole % known === 0n) dst[infer] = whole / known;
  else if (infer >= 0 || known !== whole) refuse("run", "src and dst do not hold equally many elements");
  return dst;
}

const width = (type) => (type === "bool" ? 1 : Number(type.match(/\d+/)[0]) / 8);

function move({ type, dims, strides, offset, memory }) {
  const size = width(type), out = Buffer.alloc(Number(volume(dims)) * size), index = dims.map(() => 0n);
  for (let to = 0, from = offset; to < out.length; to += size) {
    memory.copy(out, to, from, from + size);
    for (let axis = dims.length - 1; axis >= 0; axis--) {
      from += Number(strides[axis]);
      if (++index[axis] < dims[axis]) break;
      from -= Number(strides[axis] * dims[axis]);
      index[axis] = 0n;
    }
  }
  return out;
}

function entries({ type, dims, strides, offset, memory }) {
  const signed = type[0] === "s", bits = width(type) * 8;
  return Array.from({ length: Number(dims[0]) }, (_, i) => {
    let value = 0n;
    for (let k = bits / 8 - 1; k >= 0; k--) value = (value << 8n) | BigInt(memory[offset + i * Number(strides[0]) + k]);
    return signed ? BigInt.asIntN(bits, value) : value;
  });
}

function check(node) {
  const { shape, special_zero: zero } = node;
  if (!shape || !zero || zero.type !== "bool" || node.inputs !== 1 || node.outputs !== 1) refuse("compile", "ill-formed");
  if (shape.dims.length !== 1 || !/^[su]\d+$/.test(shape.type)) refuse("compile", "shape is no vector of integers");
  if (node.result) throw { unsupported: { feature: "declared" } };
}

// ── the protocol ──
const programs = new Map();
const acts = {
  hello: ({ protocol }) => protocol === "reshape-conformance/1" ? { result: { protocol, shared_memory: false, takes_src: true } }
    : { error: { message: "this program speaks reshape-conformance/1" } },
  describe: () => ({ result: {
    name: "reshape.mjs", version: "1", detail: { node: process.version },
    operations: ["StaticReshape", "DynamicReshape-1", "Reshape-1"], leaves_out: ["declared", "form"], mapped: [],
  } }),
  compile({ program, graph }) {
    graph.nodes.forEach(check);
    programs.set(program, graph.nodes);
    return { result: {} };
  },
  run({ program, tensors }) {
    const [src, ...shapes] = tensors.map((t) => // read them whatever comes of it
      ({ ...t, dims: t.dims.map(BigInt), strides: t.strides.map(BigInt), memory: read(t.bytes) }));
    if (!programs.has(program)) return { error: { message: "there is no such program" } };
    let dims = src.dims;
    for (const { operation, shape, special_zero, takes_src } of programs.get(program)) {
      const wanted = shape.values ? shape.values.map(BigInt) : entries(shapes.shift());
      dims = settle(takes_src ? src.dims : dims, wanted, special_zero.values[0], operation !== "StaticReshape");
    }
    const payload = move(src);
    return { result: { type: src.type, dims: dims.map(String), bytes: payload.length }, payload };
  },
  close({ program }) { programs.delete(program); return { result: {} }; },
  stop: () => ({ result: {} }),
};

let said = Buffer.alloc(0);
function more() {
  const chunk = Buffer.alloc(1 << 16), count = readSync(0, chunk);
  if (!count) process.exit(0);
  said = Buffer.concat([said, chunk.subarray(0, count)]);
}
function read(count) {
  const content = Buffer.alloc(count);
  let got = said.copy(content);
  said = said.subarray(got);
  while (got < count) {
    const more = readSync(0, content, got, count - got, null);
    if (!more) process.exit(0);
    got += more;
  }
  return content;
}
function line() {
  while (!said.includes(10)) more();
  return read(said.indexOf(10) + 1).toString();
}
function write(bytes) {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}

for (;;) {
  const request = JSON.parse(line());
  let reply;
  try {
    reply = acts[request.do]?.(request) ?? { error: { message: `unknown request ${request.do}` } };
  } catch (thrown) {
    reply = thrown.rejected || thrown.unsupported ? thrown : { error: { message: String(thrown) } };
  }
  const { payload = Buffer.alloc(0), ...record } = reply;
  write(Buffer.concat([Buffer.from(JSON.stringify({ id: request.id, ...record }) + "\n"), payload]));
  if (request.do === "stop") process.exit(0);
}
