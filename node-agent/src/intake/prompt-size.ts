/** The amount of text in a prompt. Its tokens are estimated from it if no count exists. */
import type { Json } from "@weiche/shared/json.ts";

export interface PromptSize {
  /** The bytes of its texts, tools and names in UTF-8, without images. */
  readonly bytes: number;
  readonly images: number;
}

/**
 * Returns the size of messages, tools or texts, from all strings in them. An image counts as one, whatever its bytes.
 */
export function promptSize(...parts: readonly unknown[]): PromptSize {
  const size = { bytes: 0, images: 0 };
  for (const part of parts) addSize(part, size);
  return size;
}

function addSize(value: unknown, size: { bytes: number; images: number }): void {
  if (typeof value === "string") size.bytes += Buffer.byteLength(value);
  else if (Array.isArray(value)) for (const item of value) addSize(item, size);
  else if (typeof value === "object" && value !== null) {
    // `Object.entries` takes four times as long, and this runs for every request.
    for (const name in value) {
      if (name === "image_url") size.images++;
      else {
        size.bytes += name.length;
        addSize((value as Json)[name], size);
      }
    }
  }
}
