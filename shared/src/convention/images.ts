/**
 * Images in messages: only data URIs, nothing is fetched. An image's bytes decide its format, not its declared type.
 */
import { Type } from "typebox";
import { worded } from "./body-reader.ts";

export interface ImageFacts {
  readonly param: string;
  /** Undefined if the format is unknown. */
  readonly format: ImageFormat | undefined;
}

type ImageFormat = "png" | "jpeg" | "webp" | "gif";

export const notAnImage = "must be a Base64 data URI, padded with =; links are not fetched";

export const imageUrl = worded(
  Type.String({ description: "Base64 data URI of a PNG, JPEG, WebP or GIF." }),
  notAnImage,
  (url) => {
    const start = dataStart(url);
    return start > 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(url.slice(start, start + signatureCharacters));
  },
);

/** Base64 characters that hold the longest format signature, in whole groups. */
const signatureCharacters = 24;

/** Reads the format from the first bytes of an accepted URL. A router keeps only these bytes of a long URL. */
export function imageFormat(url: string): ImageFormat | undefined {
  const start = dataStart(url);
  const bytes = Buffer.from(url.slice(start, start + signatureCharacters), "base64").toString("latin1");
  if (bytes.startsWith("\x89PNG\r\n\x1a\n")) return "png";
  if (bytes.startsWith("\xff\xd8\xff")) return "jpeg";
  if (bytes.startsWith("GIF87a") || bytes.startsWith("GIF89a")) return "gif";
  if (bytes.startsWith("RIFF") && bytes.slice(8, 12) === "WEBP") return "webp";
  return undefined;
}

/**
 * Rewrites an accepted URL of a known format, because engines accept only an image's media type, without parameters.
 */
export function plainImageUrl(url: string): string {
  return `data:image/${imageFormat(url)};base64,${url.slice(dataStart(url))}`;
}

/**
 * Returns whether an accepted URL is Base64 to its end. Decoders ignore other characters or stop there. Takes 1 ms per
 * million characters.
 */
export function isWholeBase64(url: string): boolean {
  const encoded = url.slice(dataStart(url));
  const end = encoded.search(/[^A-Za-z0-9+/]/);
  return encoded.length % 4 === 0 && (end < 0 || /^={1,2}$/.test(encoded.slice(end)));
}

/**
 * The head of a data URI. Parameters may have any value, such as `charset=utf-8`, `name=a%20b.png` and `name="a;
 * b.png"`.
 */
const dataUri = /^data:[\w.+-]+\/[\w.+-]+(?:;(?:[^;,="]+="[^"]*"|[^;,"]*))*;base64,/i;
/** A longer text is not the head of a data URI, because media types and file names are short. */
const headCharactersMax = 1_024;

/** Returns where the Base64 of a data URI begins, or 0 if the text is not such a URI. */
function dataStart(url: string): number {
  return dataUri.exec(url.slice(0, headCharactersMax))?.[0].length ?? 0;
}
