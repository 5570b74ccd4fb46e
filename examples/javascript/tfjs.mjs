// TensorFlow.js: tf.reshape of its CPU backend, in plain JavaScript.
//
//     npm install --prefix examples/javascript
//     conformance run "cmd:node examples/javascript/tfjs.mjs"
import { Unsupported, callEachNode, serve } from "../../adapters/javascript/reshape.mjs";
import { OPERATIONS, STRIDED, ask, bytesOf, elementsOf, numbers, resolveZeros, typesExcept } from "./shared.mjs";
import "@tensorflow/tfjs-backend-cpu";
import * as tf from "@tensorflow/tfjs-core";

const DTYPES = { f32: ["float32", Float32Array], s32: ["int32", Int32Array], bool: ["bool", Uint8Array] };

async function reshape(operation, src, shape, specialZero) {
  if (!Object.hasOwn(DTYPES, src.type)) throw new Unsupported(`type:${src.type}`);
  const [dtype, ArrayType] = DTYPES[src.type], dims = numbers(src.dims), elements = elementsOf(src, ArrayType);
  const entries = numbers(resolveZeros(src, shape, specialZero));
  const dst = await ask(() => tf.tidy(() => tf.reshape(tf.tensor(elements, dims, dtype), entries)));
  const type = Object.keys(DTYPES).find((name) => DTYPES[name][0] === dst.dtype), values = dst.dataSync();
  dst.dispose();
  return { type, dims: dst.shape.map(BigInt), elements: bytesOf(values) };
}

await tf.setBackend("cpu");
await serve({
  name: "tfjs",
  version: tf.version_core,
  detail: { node: process.version, backend: tf.getBackend() },
  operations: OPERATIONS,
  not_claimed: ["declared", "form", "threads", "length:2^53", ...STRIDED, ...typesExcept(Object.keys(DTYPES))],
  answers_special_zero: true,
}, callEachNode(reshape));
