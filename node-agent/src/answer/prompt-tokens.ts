/** Upper bound of the tokens of a prompt, by which an engine's count is believed or not. */

/** A token has at least one byte, and a template may write one byte of JSON as six. */
const tokensPerByteMax = 6;
const templateTokensMax = 4_096;
/** Images are tokenised by pixels, not by bytes. */
const imageTokensMax = 16_384;

/** `bytes`: size of the body for the engine. */
export function promptTokensMax(bytes: number, images: number): number {
  return bytes * tokensPerByteMax + templateTokensMax + images * imageTokensMax;
}

/** Tokens around each text, such as its beginning and its end. */
const edgeTokensMax = 64;

/** `bytes`: size of texts that go through no template. Normalisation may write a character of three bytes as 18. */
export function textTokensMax(bytes: number, texts: number): number {
  return bytes * tokensPerByteMax + texts * edgeTokensMax;
}
