/**
 * Serves a built browser application, the portal's or the console's. Files are read once, kept in memory, and compressed at
 * their first request. Files below `assets/` have the hash of their content in their names, so browsers may cache them for
 * ever. Browsers revalidate the others each time, and get 304 if they are unchanged.
 */
import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

const portalWeb = join(import.meta.dirname, "../../../portal-web");
/** Written by `npm run portal`. Two folders, so that no listener serves a file of the other application. */
export const builtPortal = join(portalWeb, "built");
export const builtConsole = join(portalWeb, "built-console");

const mediaTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
const yearSeconds = 31_536_000;

type Encoding = "br" | "gzip";
/** Smaller answers fit into one packet without compression. */
const compressedBytesMin = 1_000;
const compress: Readonly<Record<Encoding, (bytes: Buffer) => Promise<Buffer>>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (bytes) => promisify(gzip)(bytes, { level: 9 }),
};

interface PageFile {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly compressed: Partial<Record<Encoding, Promise<Buffer>>>;
}

/**
 * Adds a route for each built file. The HTML document is served at every page's path, and with 404 to browsers at unknown
 * ones, where the application says what is there instead. Returns whether it has answered a request.
 */
export function addPages(
  app: FastifyInstance,
  directory: string,
  pagePaths: readonly string[],
): (request: FastifyRequest, reply: FastifyReply) => boolean {
  const names = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
  let document: PageFile | undefined;
  for (const name of names) {
    const file = readPageFile(directory, name);
    const paths = name.endsWith(".html") ? pagePaths : [`/${name}`];
    if (name.endsWith(".html")) document = file;
    for (const path of paths) app.get(path, (request, reply) => sendFile(file, request, reply));
  }
  return (request, reply) => {
    const wantsPage = request.method === "GET" && request.headers.accept?.includes("text/html");
    if (wantsPage && document) void sendFile(document, request, reply.status(404));
    return Boolean(wantsPage && document);
  };
}

function readPageFile(directory: string, name: string): PageFile {
  const bytes = readFileSync(join(directory, name));
  const isHashed = name.startsWith("assets/");
  return {
    bytes,
    etag: `"${hash("sha256", bytes, "base64url").slice(0, 22)}"`,
    headers: {
      "content-type": mediaTypes[extname(name)] ?? "application/octet-stream",
      "cache-control": isHashed ? `public, max-age=${yearSeconds}, immutable` : "no-cache",
      vary: "accept-encoding",
    },
    compressed: {},
  };
}

async function sendFile(file: PageFile, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  void reply.headers(file.headers).header("etag", file.etag);
  if (request.headers["if-none-match"] === file.etag) return reply.status(304).send();
  const encoding = file.bytes.length < compressedBytesMin ? undefined : acceptedEncoding(request);
  if (!encoding) return reply.send(file.bytes);
  file.compressed[encoding] ??= compress[encoding](file.bytes);
  return reply.header("content-encoding", encoding).send(await file.compressed[encoding]);
}

function acceptedEncoding(request: FastifyRequest): Encoding | undefined {
  const accepted = String(request.headers["accept-encoding"] ?? "")
    .split(",")
    .map((one) => one.trim().toLowerCase());
  return (["br", "gzip"] as const).find((encoding) => accepted.includes(encoding));
}
