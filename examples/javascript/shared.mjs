// Helpers of the adapters in this folder.
import { Rejected, Unsupported, volume, widthOf } from "../../adapters/javascript/reshape.mjs";

export const OPERATIONS = ["StaticReshape", "DynamicReshape-1", "Reshape-1"];

// The layouts that a typed array cannot have, since it has no strides.
export const STRIDED = ["transposed", "channels-last", "padded", "cropped", "broadcast", "reversed"].map(
  (family) => `layout:${family}`,
);

// The facets of the element types that a library lacks, if it has these.
const TYPES = ["f32", "f16", "bf16", "f64", "bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"];
export const typesExcept = (names) => TYPES.filter((type) => !names.includes(type)).map((type) => `type:${type}`);

// Call a library that rejects by a plain Error. Any other class is a fault.
export async function ask(call) {
  try {
    return await call();
  } catch (error) {
    throw error.constructor === Error ? new Rejected(error.message) : error;
  }
}

// Return lengths or entries as JavaScript numbers, if they have exact ones.
export function numbers(lengths) {
  if (lengths.some((length) => !Number.isSafeInteger(Number(length)))) throw new Unsupported("length:2^53");
  return lengths.map(Number);
}

// Return the elements of src as a typed array in its own memory.
export function elementsOf({ type, dims, strides, offset, memory }, ArrayType) {
  let step = widthOf(type);
  for (let axis = dims.length - 1; axis >= 0 && !dims.includes(0n); axis--) {
    if (dims[axis] !== 1n && strides[axis] !== step) throw new Unsupported("layout");
    step *= Number(dims[axis]);
  }
  return new ArrayType(memory.buffer, memory.byteOffset + offset, Number(volume(dims)));
}

// Return a typed array as bytes.
export const bytesOf = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);

// Return shape for a library without special_zero, with copied lengths instead of zeros. A 0 past the rank of src stays.
export const resolveZeros = (src, shape, specialZero) =>
  shape.map((entry, i) => (specialZero && entry === 0n && i < src.dims.length ? src.dims[i] : entry));
