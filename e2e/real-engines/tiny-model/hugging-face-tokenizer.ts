/** The tokenizer of a GGUF as Hugging Face keeps it: byte-level BPE with the pre-tokenizer that llama.cpp calls qwen2. */

export interface GgufTokenizer {
  readonly chat_template: string;
  readonly ggml: {
    readonly model: string;
    readonly pre: string;
    readonly tokens: readonly string[];
    /** One number per token. */
    readonly token_type: readonly number[];
    /** Two tokens with a space between, the most frequent pair first. */
    readonly merges: readonly string[];
    readonly bos_token_id: number;
    readonly eos_token_id: number;
    readonly padding_token_id: number;
  };
}

const normalType = 1;
const controlType = 3;

/** The pattern of `train.py`, by which every digit is a token of its own. */
const splitPattern =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/** `tokenizer.json`. Throws if the tokenizer is of another kind. */
export function tokenizerOf({ ggml }: GgufTokenizer): object {
  const { model, pre, tokens, token_type: types } = ggml;
  if (model !== "gpt2" || pre !== "qwen2") throw new Error(`the tokenizer is ${model}/${pre}, not gpt2/qwen2`);
  const ids = tokens.map((token, id) => [token, id] as const);
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
  return {
    ...{ version: "1.0", truncation: null, padding: null },
    added_tokens: ids
      .filter(([, id]) => types[id] !== normalType)
      .map(([content, id]) => addedToken(id, content, types[id] === controlType)),
    normalizer: null,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: splitPattern }, behavior: "Isolated", invert: false },
        byteLevel,
      ],
    },
    post_processor: null,
    decoder: byteLevel,
    model: {
      ...{ type: "BPE", dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null },
      ...{ fuse_unk: false, byte_fallback: false, ignore_merges: false },
      vocab: Object.fromEntries(ids.filter(([, id]) => types[id] === normalType)),
      merges: ggml.merges.map((pair) => pair.split(" ")),
    },
  };
}

/** Markup such as `<think>` is not a special token: it stays in the text, where the engine's parsers look for it. */
function addedToken(id: number, content: string, special: boolean): object {
  return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special };
}

/** `tokenizer_config.json`. */
export function tokenizerConfigOf({ ggml, chat_template }: GgufTokenizer): object {
  const token = (id: number) => ggml.tokens[id];
  return {
    tokenizer_class: "PreTrainedTokenizerFast",
    ...{ bos_token: null, eos_token: token(ggml.eos_token_id), pad_token: token(ggml.padding_token_id) },
    ...{ add_bos_token: false, clean_up_tokenization_spaces: false },
    chat_template,
  };
}
