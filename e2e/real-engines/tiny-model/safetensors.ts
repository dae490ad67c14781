/** Weights of a GGUF as floats, and floats as a safetensors file. */

export interface Tensor {
  readonly name: string;
  /** The slowest dimension first. */
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

const float32Type = 0;
const q8Type = 8;
const q8Elements = 32;
/** A scale as float16, then the elements as signed bytes. */
const q8Bytes = 2 + q8Elements;

/** The values of a tensor that begins at `offset`. Throws at a type of tensor other than F32 and Q8_0. */
export function floatsOf(bytes: Buffer, offset: number, type: number, shape: readonly number[]): Float32Array {
  const values = new Float32Array(shape.reduce((product, length) => product * length, 1));
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset);
  if (type === float32Type) return values.map((_, at) => view.getFloat32(at * 4, true));
  if (type !== q8Type) throw new Error(`tensors of the GGML type ${type} cannot be converted; F32 and Q8_0 can`);
  return values.map((_, at) => {
    const block = Math.floor(at / q8Elements) * q8Bytes;
    return view.getFloat16(block, true) * view.getInt8(block + 2 + (at % q8Elements));
  });
}

/** Length of the header as 64 bits, the header as JSON, padded to eight bytes, then the values. */
export function safetensors(tensors: readonly Tensor[]): Buffer {
  let end = 0;
  const header: Record<string, object> = { __metadata__: { format: "pt" } };
  for (const { name, shape, values } of tensors)
    header[name] = { dtype: "F32", shape, data_offsets: [end, (end += values.byteLength)] };
  const json = JSON.stringify(header);
  const padded = Buffer.from(json.padEnd(Math.ceil(json.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  const data = tensors.map(({ values }) => Buffer.from(values.buffer, values.byteOffset, values.byteLength));
  return Buffer.concat([length, padded, ...data]);
}
