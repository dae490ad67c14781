/** What a prompt can be at most, so that an engine's count of it can be believed or not. */

/** A byte is a token where a tokeniser knows no longer one; a template may write one byte of JSON as six. */
const tokensPerByteMax = 6;
/** Templates add instructions of their own. */
const templateTokensMax = 4_096;
/** Of pixels, not of bytes. */
const imageTokensMax = 16_384;

/** `bytes`: of the body that the engine gets. */
export function promptTokensMax(bytes: number, images: number): number {
  return bytes * tokensPerByteMax + templateTokensMax + images * imageTokensMax;
}
