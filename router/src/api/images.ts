/** Images in messages: data URIs only. What they are is read from their bytes, whatever they are called. */
import { invalid, type ImageFacts, type ImageFormat } from "./request-schema.ts";

/** Throws a 400 for a link or anything else that is no Base64 data URI. */
export function readImage(url: string, param: string): ImageFacts {
  return { param, format: formatOf(url, param) };
}

/** Media types are short; a longer head is none. */
const dataUri = /^data:[\w.+-]+\/[\w.+-]+(?:;[\w.+-]+=[\w.+-]+)*;base64,/i;
const headCharactersMax = 200;
/** Enough Base64 for the longest signature, in whole groups. */
const signatureCharacters = 24;

function formatOf(url: string, param: string): ImageFormat | undefined {
  const head = dataUri.exec(url.slice(0, headCharactersMax))?.[0];
  if (head === undefined) throw invalid(param, "must be a Base64 data URI; links are not fetched");
  const encoded = url.slice(head.length, head.length + signatureCharacters);
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) throw invalid(param, "is not Base64");
  const bytes = Buffer.from(encoded, "base64").toString("latin1");
  if (bytes.startsWith("\x89PNG\r\n\x1a\n")) return "png";
  if (bytes.startsWith("\xff\xd8\xff")) return "jpeg";
  if (bytes.startsWith("GIF87a") || bytes.startsWith("GIF89a")) return "gif";
  if (bytes.startsWith("RIFF") && bytes.slice(8, 12) === "WEBP") return "webp";
  return undefined;
}
