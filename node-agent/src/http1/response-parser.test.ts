import { request as httpRequest } from "node:http";
import { Duplex } from "node:stream";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MalformedResponse, ResponseParser } from "./response-parser.ts";

interface Outcome {
  readonly status: number | undefined;
  readonly body: string;
  readonly end: "reusable" | "whole" | "cut off" | "malformed" | "unfinished";
}

/** Parses the bytes in pieces that end at `cuts`, and then ends the connection. */
function parse(bytes: Buffer, cuts: readonly number[] = []): Outcome {
  const parser = new ResponseParser();
  const body: Buffer[] = [];
  const heads: number[] = [];
  let end: ReturnType<ResponseParser["push"]> | "cut off" | "malformed" = "unfinished";
  parser.expect({ onHead: (status) => heads.push(status), onBody: (part) => body.push(part) });
  try {
    let at = 0;
    for (const cut of [...cuts, bytes.length]) {
      // After a complete response, a connection is watched but not parsed.
      if (cut <= at || end !== "unfinished") continue;
      end = parser.push(bytes.subarray(at, cut));
      at = cut;
    }
    if (end === "unfinished") end = parser.finish() ? "whole" : "cut off";
  } catch (error) {
    if (!(error instanceof MalformedResponse)) throw error;
    end = "malformed";
  }
  expect(heads.length, "at most one head").toBeLessThan(2);
  expect(body.every((part) => part.length > 0)).toBe(true);
  return { status: heads[0], body: Buffer.concat(body).toString("latin1"), end };
}

/** Cuts after each byte. */
const everywhere = (text: string) => Array.from({ length: text.length }, (_, at) => at);

const of = (text: string, cuts?: readonly number[]) => parse(Buffer.from(text, "latin1"), cuts);
const ok = "HTTP/1.1 200 OK\r\n";
const chunked = `${ok}transfer-encoding: chunked\r\n\r\n`;

describe("a response is read to the end that its head defines", () => {
  test.each<[what: string, text: string, outcome: Outcome]>([
    ["a length", `${ok}Content-Length: 3\r\n\r\nabc`, { status: 200, body: "abc", end: "reusable" }],
    ["a length of 0", `${ok}content-length: 0\r\n\r\n`, { status: 200, body: "", end: "reusable" }],
    [
      "chunks with extensions and trailers",
      `${chunked}2;a="b"\r\nab\r\n0A\r\n0123456789\r\n000\r\nx-end: 1\r\n\r\n`,
      { status: 200, body: "ab0123456789", end: "reusable" },
    ],
    ["the end of the connection", `${ok}\r\nabc`, { status: 200, body: "abc", end: "whole" }],
    ["no content", "HTTP/1.1 204 No Content\r\n\r\n", { status: 204, body: "", end: "reusable" }],
    ["not modified", "HTTP/1.1 304\r\ncontent-length: 9\r\n\r\n", { status: 304, body: "", end: "reusable" }],
    [
      "interim heads before the response",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${ok}content-length: 1\r\n\r\na`,
      { status: 200, body: "a", end: "reusable" },
    ],
    ["HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", { status: 200, body: "a", end: "whole" }],
    [
      "a peer that closes",
      `${ok}connection: x, Close\r\ncontent-length: 1\r\n\r\na`,
      { status: 200, body: "a", end: "whole" },
    ],
    ["bytes after it", `${ok}content-length: 1\r\n\r\nab`, { status: 200, body: "a", end: "whole" }],
    ["a second response after it", `${ok}content-length: 0\r\n\r\n${ok}`, { status: 200, body: "", end: "whole" }],
    ["a cut head", `${ok}content-len`, { status: undefined, body: "", end: "cut off" }],
    ["an interim head only", "HTTP/1.1 100 Continue\r\n\r\n", { status: undefined, body: "", end: "cut off" }],
    ["a cut body", `${ok}content-length: 5\r\n\r\nabc`, { status: 200, body: "abc", end: "cut off" }],
    ["a cut chunk", `${chunked}5\r\nabc`, { status: 200, body: "abc", end: "cut off" }],
    ["chunks without the last one", `${chunked}3\r\nabc\r\n`, { status: 200, body: "abc", end: "cut off" }],
    ["a last chunk without its end", `${chunked}3\r\nabc\r\n0\r\n`, { status: 200, body: "abc", end: "cut off" }],
  ])("%s", (what, text, outcome) => {
    expect(of(text)).toEqual(outcome);
    // Byte by byte, the extra bytes arrive when the response has already ended.
    const end = what.endsWith("after it") ? "reusable" : outcome.end;
    expect(of(text, everywhere(text)), "byte by byte").toEqual({ ...outcome, end });
  });
});

describe("bytes that two readers could understand differently are malformed", () => {
  test.each<[what: string, text: string]>([
    ["no HTTP", "hello\r\n"],
    ["another protocol", "HTTP/2 200 OK\r\n"],
    ["a status of two digits", "HTTP/1.1 20 OK\r\n"],
    ["a status of 600", "HTTP/1.1 600 X\r\n"],
    ["a switch to another protocol", "HTTP/1.1 101 X\r\n\r\n"],
    ["an interim head of HTTP/1.0", `HTTP/1.0 100 X\r\n\r\n${ok}content-length: 0\r\n\r\n`],
    ["a line that ends with LF alone", "HTTP/1.1 200 OK\n\n"],
    ["a CR within a line", `${ok}a: b\rc\r\n\r\n`],
    ["a NUL", `${ok}a: b\0c\r\n\r\n`],
    ["a folded field", `${ok}a: b\r\n c\r\n\r\n`],
    ["a space before the colon", `${ok}content-length : 1\r\n\r\n`],
    ["a field without a colon", `${ok}content-length\r\n\r\n`],
    ["a field without a name", `${ok}: 1\r\n\r\n`],
    ["two lengths", `${ok}content-length: 1\r\ncontent-length: 1\r\n\r\na`],
    ["a list of lengths", `${ok}content-length: 1, 1\r\n\r\na`],
    ...["", "-1", "+1", "0x1", "1.0", "1e1", "1 1", "9".repeat(16)].map((length): [string, string] => [
      `a length of ${JSON.stringify(length)}`,
      `${ok}content-length: ${length}\r\n\r\na`,
    ]),
    ["a length and chunks", `${ok}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`],
    ["chunks twice", `${ok}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n`],
    ...["gzip, chunked", "chunked, chunked", "identity", "xchunked", ""].map((coding): [string, string] => [
      `a transfer coding of ${JSON.stringify(coding)}`,
      `${ok}transfer-encoding: ${coding}\r\n\r\n`,
    ]),
    ["chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"],
    ...["", "-1", "g", "0x1", " 1", "1 1", "1 ", "1 ;a", "123456789", "1;\0", "1;", "1; a", "1;a=", '1;a="'].map(
      (line): [string, string] => [`a chunk of ${JSON.stringify(line)}`, `${chunked}${line}\r\na\r\n`],
    ),
    ["a chunk line that ends with LF alone", `${chunked}1\na\r\n`],
    ["a chunk longer than its length", `${chunked}1\r\nab\r\n`],
    ["a chunk without its end", `${chunked}1\r\na0\r\n`],
    ["a trailer that is not a field", `${chunked}0\r\nx\r\n\r\n`],
    ["a head of 16 KiB", `${ok}${"a: b\r\n".repeat(3_000)}`],
    ["a line of 16 KiB without an end", `${ok}a: ${"b".repeat(16 << 10)}`],
    ["interim heads without an end", "HTTP/1.1 100 Continue\r\n\r\n".repeat(700)],
    ["trailers of 16 KiB", `${chunked}0\r\n${"a: b\r\n".repeat(3_000)}`],
    ["an extension of 1 KiB", `${chunked}1;${"a".repeat(1 << 10)}`],
    ["an end of a chunk of three bytes", `${chunked}1\r\na\r\r\n`],
  ])("%s", (_what, text) => {
    expect(of(text).end).toBe("malformed");
    expect(of(text, everywhere(text)).end).toBe("malformed");
  });

  test("bytes without a request are malformed", () => {
    expect(() => new ResponseParser().push(Buffer.from("H"))).toThrow(MalformedResponse);
  });
});

test("no state of one response remains for the next one", () => {
  const parser = new ResponseParser();
  const closing = `HTTP/1.1 103 X\r\ncontent-length: 7\r\nconnection: close\r\n\r\n`;
  for (const text of [
    `${chunked}1\r\na\r\n0\r\n\r\n`,
    `${closing}${ok}content-length: 1\r\n\r\na`,
    `${closing}${chunked}0\r\n\r\n`,
  ]) {
    parser.expect({ onHead: () => {}, onBody: () => {} });
    expect(parser.push(Buffer.from(text))).toBe("reusable");
  }
});

test("a sink that stops the parser gets no more calls", () => {
  const text = Buffer.from(`${chunked}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`);
  const heard: string[] = [];
  const parser = new ResponseParser();
  parser.expect({
    onHead: () => heard.push("head"),
    onBody: (part) => {
      heard.push(String(part));
      parser.stop();
    },
  });
  parser.push(text);
  expect(heard).toEqual(["head", "a"]);
});

const name = fc.constantFrom("x-a", "Date", "server", "x!#$%&'*+-.^_`|~0");
const value = fc.string({ unit: fc.constantFrom("a", " ", "\t", ":", ",", "é", '"', "~"), maxLength: 12 });
const fields = fc
  .array(fc.tuple(name, value), { maxLength: 4 })
  .map((all) => all.map(([key, text]) => `${key}:${text}\r\n`).join(""));
const bytes = fc.string({ unit: fc.constantFrom("a", "\r", "\n", "0", "\0", "\xff", "{"), maxLength: 40 });

/** Returns a valid response and its content. */
const response = fc
  .record({
    interim: fc.array(
      fields.map((text) => `HTTP/1.1 103 X\r\n${text}\r\n`),
      { maxLength: 2 },
    ),
    status: fc.constantFrom(200, 204, 304, 400, 500),
    head: fields,
    framing: fc.constantFrom("length", "chunks", "close"),
    parts: fc.array(
      bytes.filter((part) => part.length > 0),
      { maxLength: 4 },
    ),
    extension: fc.constantFrom("", ";a", ';a="b c";d=e'),
    trailers: fields,
  })
  .map(({ interim, status, head, framing, parts, extension, trailers }) => {
    const body = status === 204 || status === 304 ? "" : parts.join("");
    const line = `${interim.join("")}HTTP/1.1 ${status} X\r\n${head}`;
    if (body === "" && status !== 200) return { text: `${line}content-length: 0\r\n\r\n`, status, body };
    const chunks = parts.map((part) => `${part.length.toString(16)}${extension}\r\n${part}\r\n`).join("");
    const texts = {
      length: `${line}content-length: ${body.length}\r\n\r\n${body}`,
      chunks: `${line}transfer-encoding: Chunked\r\n\r\n${chunks}0${extension}\r\n${trailers}\r\n`,
      close: `${line}\r\n${body}`,
    };
    return { text: texts[framing as keyof typeof texts], status, body };
  });
const cutting = fc.array(fc.nat(400), { maxLength: 12 }).map((cuts) => cuts.toSorted((a, b) => a - b));

test("a valid response is read the same wherever it is split, and one without its end is incomplete", () => {
  fc.assert(
    fc.property(response, cutting, fc.nat(), ({ text, status, body }, cuts, lack) => {
      const whole = of(text, cuts);
      expect(whole).toMatchObject({ status, body });
      expect(["whole", "reusable"]).toContain(whole.end);
      const part = of(text.slice(0, lack % text.length), cuts);
      const isUntilClose = whole.end === "whole" && part.status !== undefined;
      expect(part.end).toBe(isUntilClose ? "whole" : "cut off");
      expect(body.startsWith(part.body)).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

/** A response in which bytes were changed, inserted or removed. */
const mangled = fc
  .tuple(
    response,
    fc.array(fc.tuple(fc.nat(), fc.nat(3), fc.constantFrom("\r", "\n", "\0", " ", ":", ";", "0", "f", "-", "\x80")), {
      minLength: 1,
      maxLength: 3,
    }),
  )
  .map(([{ text }, changes]) =>
    changes.reduce((given, [place, taken, put]) => {
      const at = place % (given.length + 1);
      return given.slice(0, at) + (taken === 3 ? "" : put) + given.slice(at + (taken === 0 ? 0 : 1));
    }, text),
  );

test("a mangled response ends the same way wherever it is split", () => {
  fc.assert(
    fc.property(mangled, cutting, (text, cuts) => {
      const [once, cut] = [of(text), of(text, cuts)];
      const isCut = cut.end === "reusable" && once.end === "whole";
      expect(isCut ? { ...cut, end: "whole" } : cut).toEqual(once);
    }),
    { numRuns: 3_000 },
  );
});

/** Parses the same bytes with Node's own HTTP client. */
function parsedByNode(text: string): Promise<Outcome> {
  const peer = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const request = httpRequest({ method: "POST", createConnection: () => peer });
  request.on("error", () => resolve({ status: undefined, body: "", end: "malformed" }));
  request.on("response", (response) => {
    let body = "";
    response.setEncoding("latin1").on("data", (part: string) => (body += part));
    response.on("error", () => {});
    response.on("close", () =>
      resolve({ status: response.statusCode, body, end: response.complete ? "whole" : "cut off" }),
    );
  });
  request.end();
  peer.push(Buffer.from(text, "latin1"));
  peer.push(null);
  return promise;
}

/** Returns how many of these bytes belong to the response. */
function bytesOf(text: string): number {
  const parser = new ResponseParser();
  parser.expect({ onHead: () => {}, onBody: () => {} });
  let bytes = 0;
  while (bytes < text.length && parser.push(Buffer.from(text[bytes]!, "latin1")) === "unfinished") bytes++;
  return bytes + 1;
}

test("Node's own parser agrees on every response that counts as complete", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        mangled,
        response.map(({ text }) => text),
      ),
      async (text) => {
        const ours = of(text);
        if (ours.end !== "whole" && ours.end !== "reusable") return;
        expect(await parsedByNode(text.slice(0, bytesOf(text)))).toEqual({ ...ours, end: "whole" });
      },
    ),
    { numRuns: 1_000 },
  );
});
