/**
 * Writes a GGUF of the architecture qwen3 in the layout of Hugging Face, for engines that do not read GGUF, such as vLLM:
 * `config.json`, `generation_config.json`, `model.safetensors`, `tokenizer.json`, `tokenizer_config.json` and
 * `chat_template.jinja`. Weights become float32 and keep the values that the GGUF has: quantised ones stay as coarse as
 * they are.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readGgufFileInfo } from "node-llama-cpp";
import { tokenizerConfigOf, tokenizerOf, type GgufTokenizer } from "./hugging-face-tokenizer.ts";
import { floatsOf, safetensors, type Tensor } from "./safetensors.ts";

/** `file`: the GGUF. `directory`: made if it is not there. Throws unless the model's architecture is `qwen3`. */
export async function writeHuggingFace(file: string, directory: string): Promise<void> {
  const { metadata, fullTensorInfo = [] } = await readGgufFileInfo(file);
  const { architecture } = metadata.general;
  if (architecture !== "qwen3") throw new Error(`${file} is of the architecture ${architecture}, not qwen3`);
  const tokenizer = metadata.tokenizer as unknown as GgufTokenizer;
  const bytes = readFileSync(file);
  const tensors = fullTensorInfo.map(({ name, dimensions, ggmlType, fileOffset }): Tensor => {
    const shape = dimensions.map(Number).toReversed();
    return { name: tensorName(name), shape, values: floatsOf(bytes, Number(fileOffset), ggmlType, shape) };
  });

  mkdirSync(directory, { recursive: true });
  const write = (name: string, content: object) =>
    writeFileSync(join(directory, name), `${JSON.stringify(content, null, 2)}\n`);
  write("config.json", configOf(metadata["qwen3"] as unknown as Qwen3, tokenizer));
  write("generation_config.json", { eos_token_id: tokenizer.ggml.eos_token_id });
  write("tokenizer.json", tokenizerOf(tokenizer));
  write("tokenizer_config.json", tokenizerConfigOf(tokenizer));
  writeFileSync(join(directory, "chat_template.jinja"), tokenizer.chat_template);
  writeFileSync(join(directory, "model.safetensors"), safetensors(tensors));
}

/** The metadata in a GGUF file of a model of this architecture. */
interface Qwen3 {
  readonly context_length: number;
  readonly embedding_length: number;
  readonly block_count: number;
  readonly feed_forward_length: number;
  readonly attention: {
    readonly head_count: number;
    readonly head_count_kv: number;
    readonly key_length: number;
    readonly layer_norm_rms_epsilon: number;
  };
  readonly rope: { readonly freq_base: number };
}

function configOf(model: Qwen3, { ggml }: GgufTokenizer): object {
  const { attention } = model;
  const theta = model.rope.freq_base;
  return {
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    ...{ bos_token_id: ggml.bos_token_id, eos_token_id: ggml.eos_token_id, pad_token_id: ggml.padding_token_id },
    ...{
      vocab_size: ggml.tokens.length,
      hidden_size: model.embedding_length,
      intermediate_size: model.feed_forward_length,
    },
    ...{ num_hidden_layers: model.block_count, max_window_layers: model.block_count },
    ...{ num_attention_heads: attention.head_count, num_key_value_heads: attention.head_count_kv },
    head_dim: attention.key_length,
    max_position_embeddings: model.context_length,
    // A GGUF has it as float32: 1e-6 is read as 9.999999974752427e-7.
    rms_norm_eps: Number(attention.layer_norm_rms_epsilon.toPrecision(6)),
    // The places in which versions 4 and 5 of the transformers library look for it.
    ...{ rope_theta: theta, rope_parameters: { rope_type: "default", rope_theta: theta } },
    ...{ hidden_act: "silu", attention_bias: false, attention_dropout: 0, initializer_range: 0.02 },
    ...{ use_sliding_window: false, sliding_window: null, use_cache: true },
    // The output has no separate tensor.
    tie_word_embeddings: true,
    ...{ torch_dtype: "float32", dtype: "float32" },
  };
}

const partNames: Readonly<Record<string, string>> = {
  attn_norm: "input_layernorm",
  ffn_norm: "post_attention_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.o_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
};

function tensorName(name: string): string {
  if (name === "token_embd.weight") return "model.embed_tokens.weight";
  if (name === "output_norm.weight") return "model.norm.weight";
  const [, layer, part] = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name) ?? [];
  const named = part === undefined ? undefined : partNames[part];
  if (named === undefined) throw new Error(`no name for the tensor ${name}`);
  return `model.layers.${layer}.${named}.weight`;
}

if (import.meta.main) {
  const [file, directory] = process.argv.slice(2);
  if (file === undefined || directory === undefined) {
    console.error("usage: node hugging-face.ts FILE.gguf DIRECTORY");
    process.exit(2);
  }
  await writeHuggingFace(file, directory);
  console.log(`${directory}: config, tokenizer and weights of ${file}`);
}
