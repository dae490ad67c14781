/** Images in messages: data URIs only, nothing is ever fetched. What they are is told by their bytes, not by their name. */
import { Type } from "typebox";
import { worded } from "./body-reader.ts";

export interface ImageFacts {
  readonly param: string;
  /** Undefined: none that we know. */
  readonly format: ImageFormat | undefined;
}

export type ImageFormat = "png" | "jpeg" | "webp" | "gif";

export const notAnImage = "must be a Base64 data URI, padded with =; links are not fetched";

export const imageUrl = worded(
  Type.String({ description: "Base64 data URI of a PNG, JPEG, WebP or GIF." }),
  notAnImage,
  (url) => {
    const start = dataStart(url);
    return start > 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(url.slice(start, start + signatureCharacters));
  },
);

/** Enough Base64 for the longest signature, in whole groups. */
const signatureCharacters = 24;

/** Reads the format from the first bytes of an accepted URL, which is all that a router keeps of a long one. */
export function imageFormat(url: string): ImageFormat | undefined {
  const start = dataStart(url);
  const bytes = Buffer.from(url.slice(start, start + signatureCharacters), "base64").toString("latin1");
  if (bytes.startsWith("\x89PNG\r\n\x1a\n")) return "png";
  if (bytes.startsWith("\xff\xd8\xff")) return "jpeg";
  if (bytes.startsWith("GIF87a") || bytes.startsWith("GIF89a")) return "gif";
  if (bytes.startsWith("RIFF") && bytes.slice(8, 12) === "WEBP") return "webp";
  return undefined;
}

/** Rewrites an accepted URL of a known format: engines take a media type of images, and no parameters. */
export function plainImageUrl(url: string): string {
  return `data:image/${imageFormat(url)};base64,${url.slice(dataStart(url))}`;
}

/** Whether an accepted URL is Base64 to its end: decoders pass over what they do not know, or stop there. 1 ms per million. */
export function isWholeBase64(url: string): boolean {
  const encoded = url.slice(dataStart(url));
  const end = encoded.search(/[^A-Za-z0-9+/]/);
  return encoded.length % 4 === 0 && (end < 0 || /^={1,2}$/.test(encoded.slice(end)));
}

/** Parameters may have any value, such as `charset=utf-8`, `name=a%20b.png` and `name="a; b.png"`. */
const dataUri = /^data:[\w.+-]+\/[\w.+-]+(?:;(?:[^;,="]+="[^"]*"|[^;,"]*))*;base64,/i;
/** Media types and names of files are short; a longer head is none. */
const headCharactersMax = 1_024;

/** Where the Base64 of a data URI begins; 0: it is no such URI. */
function dataStart(url: string): number {
  return dataUri.exec(url.slice(0, headCharactersMax))?.[0].length ?? 0;
}
