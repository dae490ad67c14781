/** The tiny model in the layout of Hugging Face, read back. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Template } from "@huggingface/jinja";
import { readGgufFileInfo } from "node-llama-cpp";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readRecording } from "../../../node-agent/test/exchange/recordings.ts";
import { writeHuggingFace } from "./hugging-face.ts";
import { writeLora } from "./lora.ts";

const models = join(import.meta.dirname, "../../../node-agent/models");
const gguf = join(models, "weiche-tiny.gguf");
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "weiche-hugging-face-"));
  await writeHuggingFace(gguf, directory);
});
afterAll(() => rmSync(directory, { recursive: true }));

function json<Content>(name: string): Content {
  return JSON.parse(readFileSync(join(directory, name), "utf8")) as Content;
}

test("the page of the model has the checksum of its file", () => {
  const checksum = createHash("sha256").update(readFileSync(gguf)).digest("hex");
  expect(readFileSync(join(models, "README.md"), "utf8")).toContain(`\`${checksum}\``);
});

test("its shape is the model's", () => {
  expect(json("config.json")).toMatchObject({
    ...{ architectures: ["Qwen3ForCausalLM"], vocab_size: 2048, hidden_size: 192, intermediate_size: 576 },
    ...{ num_hidden_layers: 6, num_attention_heads: 6, num_key_value_heads: 3, head_dim: 32 },
    ...{ rope_theta: 100_000, rms_norm_eps: 1e-6, max_position_embeddings: 32_768, tie_word_embeddings: true },
  });
});

interface Stored {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

test("every weight has the value that it has in the GGUF, and nothing is left over", async () => {
  const file = readFileSync(join(directory, "model.safetensors"));
  const data = 8 + Number(file.readBigUInt64LE());
  const { __metadata__, ...header } = JSON.parse(file.toString("utf8", 8, data)) as Record<string, Stored>;
  const stored = Object.values(header);
  const source = readFileSync(gguf);
  const { fullTensorInfo: tensors = [] } = await readGgufFileInfo(gguf);
  expect(stored).toHaveLength(tensors.length);
  expect(data % 8, "tensors are aligned").toBe(0);
  let end = 0;
  for (const [at, { dimensions, ggmlType, fileOffset, name }] of tensors.entries()) {
    const { dtype, shape, data_offsets: offsets } = stored[at]!;
    expect({ dtype, shape }, `${name}`).toEqual({ dtype: "F32", shape: [...dimensions].toReversed() });
    expect(offsets[0]).toBe(end);
    end = offsets[1];
    let wrong = 0;
    for (let element = 0; element < (end - offsets[0]) / 4; element++)
      if (file.readFloatLE(data + offsets[0] + element * 4) !== valueOf(source, Number(fileOffset), ggmlType, element))
        wrong++;
    expect(wrong, `${name}`).toBe(0);
  }
  expect(file).toHaveLength(data + end);
});

/** One element of an F32 or Q8_0 tensor; halves are read bit by bit. */
function valueOf(source: Buffer, offset: number, type: number, element: number): number {
  if (type === 0) return source.readFloatLE(offset + element * 4);
  const block = offset + Math.floor(element / 32) * 34;
  const bits = source.readUInt16LE(block);
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const scale = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return Math.fround((bits >> 15 ? -scale : scale) * source.readInt8(block + 2 + (element % 32)));
}

test("tensors are named as the Qwen3 architecture names them", () => {
  const file = readFileSync(join(directory, "model.safetensors"));
  const header = JSON.parse(file.toString("utf8", 8, 8 + Number(file.readBigUInt64LE()))) as object;
  const layer = Object.keys(header).filter((name) => name.startsWith("model.layers.5."));
  const parts = layer.map((name) => name.slice("model.layers.5.".length, -".weight".length)).toSorted();
  expect(parts).toEqual([
    ...["input_layernorm", "mlp.down_proj", "mlp.gate_proj", "mlp.up_proj", "post_attention_layernorm"],
    ...["self_attn.k_norm", "self_attn.k_proj", "self_attn.o_proj"],
    ...["self_attn.q_norm", "self_attn.q_proj", "self_attn.v_proj"],
  ]);
  expect(Object.keys(header)).toEqual(expect.arrayContaining(["model.embed_tokens.weight", "model.norm.weight"]));
});

interface TokenizerJson {
  readonly added_tokens: readonly { readonly id: number; readonly content: string }[];
  readonly pre_tokenizer: { readonly pretokenizers: readonly [{ readonly pattern: { readonly Regex: string } }] };
  readonly model: { readonly vocab: Readonly<Record<string, number>>; readonly merges: readonly [string, string][] };
}

test("an adapter has two matrices for the queries of each layer", () => {
  const adapter = join(directory, "adapter");
  writeLora(directory, adapter);
  const file = readFileSync(join(adapter, "adapter_model.safetensors"));
  const data = 8 + Number(file.readBigUInt64LE());
  const { __metadata__, ...header } = JSON.parse(file.toString("utf8", 8, data)) as Record<string, Stored>;
  expect(Object.keys(header)).toHaveLength(2 * 6);
  const of = (matrix: string) => header[`base_model.model.model.layers.5.self_attn.q_proj.${matrix}.weight`]?.shape;
  expect([of("lora_A"), of("lora_B")]).toEqual([
    [8, 192],
    [192, 8],
  ]);
  expect(json("adapter/adapter_config.json")).toMatchObject({ peft_type: "LORA", r: 8, target_modules: ["q_proj"] });
});

test("texts and chats have the tokens that vLLM made of them", () => {
  const text = readRecording("v90-tokenize-prompt");
  expect(tokensOf(String(text.request["prompt"]))).toEqual(tokensIn(text.body));
  const chat = readRecording("v91-tokenize-messages");
  const { messages, tools } = chat.request;
  const template = new Template(readFileSync(join(directory, "chat_template.jinja"), "utf8"));
  const prompt = template.render({ messages, tools, enable_thinking: false, add_generation_prompt: true });
  expect(tokensOf(prompt)).toEqual(tokensIn(chat.body));
});

function tokensIn(body: string): unknown {
  return (JSON.parse(body) as { tokens: unknown }).tokens;
}

/** Tokenises with this file as the Hugging Face library does, only slower. */
function tokensOf(text: string): number[] {
  const { added_tokens: added, pre_tokenizer, model } = json<TokenizerJson>("tokenizer.json");
  const ranks = new Map(model.merges.map((pair, rank) => [pair.join(" "), rank]));
  const words = new RegExp(pre_tokenizer.pretokenizers[0].pattern.Regex, "gu");
  const markup = new RegExp(`(${added.map(({ content }) => RegExp.escape(content)).join("|")})`);
  return text.split(markup).flatMap((part) => {
    const known = added.find(({ content }) => content === part);
    if (known) return [known.id];
    return (part.match(words) ?? [])
      .flatMap((word) => merged([...Buffer.from(word)].map(letterOf), ranks))
      .map((token) => model.vocab[token]!);
  });
}

function merged(pieces: string[], ranks: ReadonlyMap<string, number>): string[] {
  for (;;) {
    const pairs = pieces.slice(1).map((piece, at) => ranks.get(`${pieces[at]} ${piece}`) ?? Infinity);
    const best = Math.min(...pairs, Infinity);
    if (best === Infinity) return pieces;
    const at = pairs.indexOf(best);
    pieces.splice(at, 2, pieces[at]! + pieces[at + 1]!);
  }
}

/** Byte-level BPE writes each byte as a letter: printable ones as they are, the others from U+0100 on, in order. */
function letterOf(byte: number): string {
  const isPrintable = (code: number) => (code > 32 && code < 127) || (code > 160 && code !== 173);
  if (isPrintable(byte)) return String.fromCodePoint(byte);
  return String.fromCodePoint(
    256 + Array.from({ length: byte }, (_, code) => code).filter((code) => !isPrintable(code)).length,
  );
}

test("a model of another architecture is refused", async () => {
  const other = join(directory, "other.gguf");
  writeFileSync(other, readFileSync(gguf).toString("latin1").replace("qwen3", "llama"), "latin1");
  await expect(writeHuggingFace(other, directory)).rejects.toThrow("is of the architecture llama, not qwen3");
});
