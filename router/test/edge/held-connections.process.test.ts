/** All known ways to hold a connection without a key, on both listeners. Each connection is closed, however slow its bytes. */
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { certificate } from "../nodes/certificate.ts";
import { startListener, type ListenerKind } from "./listener-rig.ts";
import { RawClient, until } from "./raw-client.ts";
import { temporaryFolder } from "../db/database-fixture.ts";

const ms = 300;
const times = { headersMsMax: ms, keepAliveMs: ms, discardMs: ms, stallMsMax: ms, handshakeMsMax: ms };
const boundMs = 20_000;
const dripMs = 40;

const { path: folder } = await forThisFile(temporaryFolder());

interface Way {
  readonly name: string;
  readonly start: string;
  /** If true, `drip` begins after an answer. */
  readonly afterAnswer?: true;
  /** Sent repeatedly. */
  readonly drip?: string;
}

const head = (path: string, ...lines: string[]) =>
  ["GET", path, "HTTP/1.1\r\nhost: x\r\n"].join(" ") + lines.map((line) => `${line}\r\n`).join("");
const waysOf = (path: string): Way[] => {
  const whole = `${head(path)}\r\n`;
  const long = head(path, "content-length: 100000");
  const chunks = `${head(path, "transfer-encoding: chunked")}\r\n`;
  return [
    { name: "silence", start: "" },
    { name: "half a head", start: head(path) },
    { name: "a head that drips", start: head(path), drip: "x: y\r\n" },
    { name: "empty lines", start: "\r\n", drip: "\r\n" },
    { name: "a lone line end", start: "\n" },
    { name: "silence after an answer", start: whole },
    { name: "empty lines after an answer", start: whole, afterAnswer: true, drip: "\r\n" },
    { name: "carriage returns after an answer", start: whole, afterAnswer: true, drip: "\r" },
    { name: "half a head after an answer", start: whole, afterAnswer: true, drip: "G" },
    { name: "a body that is not read", start: `${long}\r\n`, drip: "x" },
    { name: "a body that is not read and never sent", start: `${long}\r\n` },
    { name: "a body of a request that is served", start: `${long}authorization: Bearer sk-good\r\n\r\n`, drip: "x" },
    { name: "chunks that are not read", start: chunks, drip: "1\r\nx\r\n" },
    { name: "a chunk's size without an end", start: chunks, drip: "0" },
    { name: "a chunk's extension without an end", start: `${chunks}1;`, drip: "x" },
    { name: "trailers without an end", start: `${chunks}0\r\n`, drip: "x: y\r\n" },
    { name: "a body that waits for 100 Continue", start: `${long}expect: 100-continue\r\n\r\n` },
    { name: "another expectation", start: `${long}expect: wonders\r\n\r\n`, drip: "x" },
    { name: "an upgrade", start: `${head(path, "connection: upgrade", "upgrade: websocket")}\r\n`, drip: "x" },
    { name: "an upgrade to HTTP/2", start: `${head(path, "connection: upgrade", "upgrade: h2c")}\r\n` },
    { name: "the preface of HTTP/2", start: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", drip: "x" },
    { name: "a tunnel", start: "CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n", drip: "x" },
    { name: "HTTP/1.0 that is kept", start: `GET ${path} HTTP/1.0\r\nconnection: keep-alive\r\n\r\n` },
    { name: "a wrong key with a body", start: `${long}authorization: Bearer x\r\n\r\n`, drip: "x" },
    { name: "a change without a session", start: `POST${long.slice(3)}\r\n`, drip: "x" },
  ];
};

const handshakes: readonly Way[] = [
  { name: "a TLS greeting that is never sent", start: "" },
  { name: "a TLS greeting without an end", start: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", drip: "\0" },
  { name: "plain HTTP instead of TLS", start: `${head("/")}\r\n`, drip: "x" },
];

/** Returns whether the server closes both directions of the connection in time, so that further bytes are reset. */
async function closes(port: number, isTls: boolean, { start, drip, afterAnswer }: Way): Promise<boolean> {
  const client = new RawClient(port, isTls);
  client.socket.write(start, "latin1");
  if (afterAnswer) await until(() => client.received !== "", boundMs);
  const timer = setInterval(() => client.socket.write(client.isEnded ? "x" : (drip ?? ""), "latin1"), dripMs);
  await until(() => client.isClosed, boundMs).catch(() => {});
  clearInterval(timer);
  client.socket.destroy();
  return client.isClosed;
}

const paths: Record<ListenerKind, string[]> = { api: ["/v1/models", "/nowhere"], portal: ["/api/account", "/"] };

test.each([
  ["api", false],
  ["api", true],
  ["portal", false],
  ["portal", true],
] as const)("no known way holds a connection to the %s for ever (TLS: %s) [D1]", async (kind, isTls) => {
  const tls = { current: certificate(folder, kind), onChange: () => () => {} };
  await using listener = await startListener(kind, { times, requestMsMax: ms, ...(isTls ? { tls } : {}) });
  const ways = paths[kind].flatMap((path) => waysOf(path).map((way) => ({ ...way, name: `${way.name} (${path})` })));
  const tried = [
    ...ways.map(async (way) => ({ ...way, isClosed: await closes(listener.port, isTls, way) })),
    ...(isTls ? handshakes : []).map(async (way) => ({ ...way, isClosed: await closes(listener.port, false, way) })),
  ];
  const stillOpen = (await Promise.all(tried)).filter(({ isClosed }) => !isClosed).map(({ name }) => name);
  expect(stillOpen).toEqual([]);
});
