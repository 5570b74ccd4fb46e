// A backend for `conformance run` in one file of JavaScript. It works without any change; what to change is marked CHANGE.
//
// Run `conformance check-adapter 'cmd:node FILE'`, then `conformance run 'cmd:node FILE'`.
// Pass each call to the library as it is, and return its answer as it is: a verdict must be about the library.
// A file that imports this one can serve a library with `serve` instead.
import { readSync, realpathSync, writeSync } from "node:fs";
import { fileURLToPath } from "node:url";

// CHANGE: your backend, and what it claims. Leave out the facets that your library does not support, such as
// "length:2^53" if it takes lengths as numbers.
const BACKEND = {
  name: "template",
  version: "1",
  detail: { node: process.version },
  operations: ["StaticReshape", "DynamicReshape-1", "Reshape-1"],
  not_claimed: ["declared", "form"],
  answers_special_zero: false, // true if this file answers it, because the library cannot
};

export class Rejected extends Error {}
export class Unsupported extends Error {} // the message is a facet

// CHANGE: the classes of errors by which the library rejects a call; never Error or TypeError.
const REJECTIONS = [Rejected];

// The number of bytes of an element.
export const widthOf = (type) => (type === "bool" ? 1 : Number(type.match(/\d+/)[0]) / 8);

// The number of elements. Lengths are BigInt, because they may need 64 bits.
export const volume = (dims) => dims.reduce((product, length) => product * length, 1n);

// ── CHANGE: the library. Replace all of this, down to the end of `reshape`, with calls of yours. ──

function findDims(operation, src, shape, specialZero) {
  if (shape.some((entry) => entry < -1n)) throw new Rejected("an entry of shape is below -1");
  if (shape.filter((entry) => entry === -1n).length > 1) throw new Rejected("more than one entry of shape is -1");
  if (operation === "StaticReshape" && !specialZero && shape.includes(0n) && shape.includes(-1n))
    throw new Rejected("shape has a 0 beside a -1");
  if (specialZero && shape.some((entry, i) => entry === 0n && i >= src.length))
    throw new Rejected("a 0 in shape copies a dimension that src does not have");
  const dst = shape.map((entry, i) => (entry === 0n && specialZero ? src[i] : entry));
  const infer = dst.indexOf(-1n), count = volume(src), known = volume(dst.filter((length) => length !== -1n));
  if (infer >= 0 && known !== 0n && count % known === 0n) dst[infer] = count / known;
  else if (infer >= 0 || known !== count) throw new Rejected("src and dst do not have equally many elements");
  return dst;
}

// Return src's elements in row-major order.
function copyElements({ type, dims, strides, offset, memory }) {
  const width = widthOf(type), out = Buffer.alloc(Number(volume(dims)) * width), index = dims.map(() => 0n);
  for (let to = 0, from = offset; to < out.length; to += width) {
    memory.copy(out, to, from, from + width);
    for (let axis = dims.length - 1; axis >= 0; axis--) {
      from += strides[axis];
      if (++index[axis] < dims[axis]) break;
      from -= strides[axis] * Number(dims[axis]);
      index[axis] = 0n;
    }
  }
  return out;
}

// Return dst's dims, as BigInt, its elements without gaps, in a Buffer or a typed array, and its type, if that may be
// another one. src has its type and dims, its memory as a Buffer, and in bytes the offset of the first element and the
// strides, which may be 0 or negative. The function may be async.
function reshape(operation, src, shape, specialZero) {
  const dims = findDims(operation, src.dims, shape, specialZero);
  return { dims, elements: copyElements(src) };
}

// ── the protocol ──
const programs = new Map();

// Serve a backend with a function that compiles a graph. It returns an object with `run`, which takes src and the shapes
// that arrive with the call and returns a tensor without gaps. `close` is called, if there is one, after the last run.
export async function serve(backend, compile) {
  if (REJECTIONS.some((kind) => kind === Error || kind === TypeError)) die("REJECTIONS names a class by which bugs speak");
  for (;;) {
    const request = readHeader(), { payload = [], ...reply } = await perform(request, { backend, compile });
    write(Buffer.concat([Buffer.from(`${JSON.stringify({ id: request.id, ...reply })}\n`), ...payload]));
    if (request.do === "stop") process.exit(0);
  }
}

// Return a function that compiles a graph for a library that is one function, as `reshape` above.
export const callEachNode = (reshape) => ({ nodes }) => {
  const feature = nodes.map(missingFacet).find(Boolean);
  if (feature) throw new Unsupported(feature);
  return {
    async run(src, shapes) {
      const arriving = [...shapes];
      let dst = src;
      for (const { operation, shape, special_zero, takes_src } of nodes) {
        const entries = shape.values?.map(BigInt) ?? entriesOf(arriving.shift());
        const from = takes_src ? src : dst;
        const { type = from.type, dims, elements } = await reshape(operation, from, entries, special_zero.values[0]);
        dst = dense(type, dims, elements);
      }
      return dst;
    },
  };
};

// A facet that the node needs and a call of `reshape` cannot express.
function missingFacet({ shape, special_zero: zero, attributes, inputs, outputs, result }) {
  const isPlain = shape && shape.dims.length === 1 && /^[su]\d+$/.test(shape.type) && zero?.type === "bool" &&
    zero.values && !Object.keys(attributes).length && inputs === 1 && outputs === 1;
  return isPlain ? result && "declared" : "form";
}

function readTensor({ type, dims, strides, offset, bytes }) {
  return { type, dims: dims.map(BigInt), strides: strides.map(Number), offset, memory: read(bytes) };
}

function entriesOf({ type, dims, strides, offset, memory }) {
  const width = widthOf(type), asNumber = type[0] === "s" ? BigInt.asIntN : BigInt.asUintN;
  return Array.from({ length: Number(dims[0]) }, (_, i) => {
    const at = offset + i * strides[0], bytes = Buffer.from(memory.subarray(at, at + width)).reverse();
    return asNumber(width * 8, BigInt(`0x${bytes.toString("hex")}`));
  });
}

// A tensor without gaps, with its elements in a Buffer or any typed array.
function dense(type, dims, elements) {
  const memory = Buffer.from(elements.buffer, elements.byteOffset, elements.byteLength);
  const strides = dims.map((_, axis) => widthOf(type) * Number(volume(dims.slice(axis + 1))));
  return { type, dims, strides, offset: 0, memory };
}

async function answer(program, src, shapes) {
  try {
    const dst = await program.run(src, shapes);
    return { result: { type: dst.type, dims: dst.dims.map(String), bytes: dst.memory.length }, payload: [dst.memory] };
  } catch (error) {
    return refusal(error, "run");
  }
}

function refusal(error, stage) {
  if (error instanceof Unsupported) return { unsupported: { feature: error.message } };
  if (REJECTIONS.some((kind) => error instanceof kind)) return { rejected: { stage, message: error.message } };
  return { error: { message: String(error) } };
}

async function run({ program, tensors }) {
  const inputs = tensors.map(readTensor), [src, ...shapes] = inputs; // they are read whatever follows
  const before = inputs.map(({ memory }) => Buffer.from(memory));
  if (!programs.has(program)) return { error: { message: "there is no such program" } };
  const reply = await answer(programs.get(program), src, shapes);
  const changed = inputs.map(({ memory }, tensor) => ({ tensor, bytes: memory.length, memory }))
    .filter(({ tensor, memory }) => !memory.equals(before[tensor]));
  return {
    ...reply,
    wrote: changed.map(({ tensor, bytes }) => ({ tensor, bytes })),
    payload: [...(reply.payload ?? []), ...changed.map(({ memory }) => memory)],
  };
}

const acts = {
  hello: ({ protocol }) => protocol === "reshape-conformance/1"
    ? { result: { protocol, shared_memory: false, takes_src: true } }
    : { error: { message: "this program speaks reshape-conformance/1" } },
  describe: (_, { backend }) => ({ result: backend }),
  async compile({ program, graph }, { compile }) {
    programs.set(program, await compile(graph));
    return { result: {} };
  },
  run,
  async close({ program }) {
    await programs.get(program)?.close?.();
    programs.delete(program);
    return { result: {} };
  },
  stop: () => ({ result: {} }),
};

async function perform(request, served) {
  try {
    if (!Object.hasOwn(acts, request.do)) return { error: { message: `unknown request ${request.do}` } };
    return await acts[request.do](request, served);
  } catch (error) {
    return refusal(error, request.do === "compile" ? "compile" : "run");
  }
}

let buffered = Buffer.alloc(0);

function read(size) {
  const bytes = Buffer.alloc(size);
  let at = buffered.copy(bytes);
  buffered = buffered.subarray(at);
  while (at < size) at += readSync(0, bytes, at, size - at) || die("the input ends inside a tensor");
  return bytes;
}

function readHeader() {
  while (!buffered.includes(10)) {
    const chunk = Buffer.alloc(1 << 16), count = readSync(0, chunk) || process.exit(0);
    buffered = Buffer.concat([buffered, chunk.subarray(0, count)]);
  }
  const line = read(buffered.indexOf(10) + 1).toString();
  try {
    return Object(JSON.parse(line));
  } catch {
    return die("a header is no JSON");
  }
}

function die(why) {
  console.error(`adapter: ${why}`);
  process.exit(65);
}

function write(bytes) {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}

console.log = console.info = console.debug = console.error; // standard output is for replies alone
if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await serve(BACKEND, callEachNode(reshape));
