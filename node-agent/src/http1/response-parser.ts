/**
 * Reads HTTP/1.1 responses (RFC 9112) from bytes that are split anywhere. Bytes that two readers could understand
 * differently are malformed, because a misread end would give one customer the answer of another.
 */
export interface ResponseSink {
  /** The final status, 200 to 599. */
  onHead(status: number): void;
  /** A part of the body. The sink may keep it. */
  onBody(bytes: Buffer): void;
}

/** The peer broke the protocol. The message quotes nothing from the peer. */
export class MalformedResponse extends Error {}

/** Limit of a head together with the interim heads before it, and of the trailers. */
const headBytesMax = 16 << 10;
/** Limit of the line that begins a chunk, with its length and extensions. */
const chunkLineBytesMax = 1 << 10;

const token = String.raw`[!#$%&'*+\-.^_\`|~\dA-Za-z]+`;
const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n$/;
const fieldLine = new RegExp(String.raw`^(${token}):([\t\x20-\x7e\x80-\xff]*)\r\n$`);
/** Extensions are allowed and ignored. */
const chunkLine = new RegExp(
  String.raw`^([\da-fA-F]{1,8})(?:;${token}(?:=(?:${token}|"[\t !#-\[\]-~\x80-\xff]*"))?)*\r\n$`,
);

/** The next line, after the rest of the body or chunk. `none`: the response ends there. */
type Line = "none" | "status" | "field" | "chunk" | "chunk end" | "trailer";

export class ResponseParser {
  #sink: ResponseSink | undefined;
  #next: Line = "none";
  /** The beginning of a line whose end has not arrived. */
  #line = "";
  /** The bytes that this line, or the lines of this head, may still have. */
  #lineBytesLeft = 0;
  /** The remaining bytes of the body or chunk. Infinite if the body ends with the connection. */
  #bytesLeft = 0;
  #status = 0;
  #isHttp10 = false;
  #isChunked = false;
  #length: number | undefined;
  #closes = false;

  /** Call this when a request was sent. Its response goes to `sink`. */
  expect(sink: ResponseSink): void {
    this.#sink = sink;
    this.#expectLine("status", headBytesMax);
  }

  /** Makes no more calls to the sink. */
  stop(): void {
    this.#next = "none";
    this.#bytesLeft = 0;
  }

  /**
   * Returns whether the response is complete, and whether the connection may then carry another request. Throws
   * `MalformedResponse`, also for bytes without a request.
   */
  push(bytes: Buffer): "unfinished" | "whole" | "reusable" {
    if (!this.#isDue()) throw new MalformedResponse("bytes without a request");
    let at = 0;
    while (at < bytes.length && this.#isDue())
      at = this.#bytesLeft > 0 ? this.#takeBody(bytes, at) : this.#takeLine(bytes, at);
    if (this.#isDue()) return "unfinished";
    return this.#closes || at < bytes.length ? "whole" : "reusable";
  }

  /** Call this when the connection ends. Returns false if the end cuts a response off. */
  finish(): boolean {
    return !this.#isDue() || this.#bytesLeft === Infinity;
  }

  #isDue(): boolean {
    return this.#next !== "none" || this.#bytesLeft > 0;
  }

  #expectLine(next: Line, bytesMax: number): void {
    this.#next = next;
    this.#lineBytesLeft = bytesMax;
  }

  /** Returns the offset after the bytes that it took. */
  #takeBody(bytes: Buffer, at: number): number {
    const end = Math.min(at + this.#bytesLeft, bytes.length);
    this.#bytesLeft -= end - at;
    this.#sink!.onBody(bytes.subarray(at, end));
    return end;
  }

  #takeLine(bytes: Buffer, at: number): number {
    const lineEnd = bytes.indexOf(10, at) + 1;
    const end = lineEnd === 0 ? bytes.length : lineEnd;
    this.#lineBytesLeft -= end - at;
    if (this.#lineBytesLeft < 0) throw new MalformedResponse(`${this.#next} too long`);
    const line = this.#line + bytes.toString("latin1", at, end);
    this.#line = lineEnd === 0 ? line : "";
    if (lineEnd > 0) this.#readLine(line);
    return end;
  }

  #readLine(line: string): void {
    const isEmpty = line === "\r\n";
    if (this.#next === "field" && isEmpty) return this.#endHead();
    switch (this.#next) {
      case "status":
        return this.#readStatus(line);
      case "field":
        return this.#readField(line);
      case "chunk":
        return this.#readChunkLine(line);
      case "chunk end":
        if (!isEmpty) throw new MalformedResponse("chunk end");
        return this.#expectLine("chunk", chunkLineBytesMax);
      case "trailer":
      case "none":
        if (isEmpty) this.#next = "none";
        else match(fieldLine, line, "trailer");
    }
  }

  #readStatus(line: string): void {
    const [, minor, status] = match(statusLine, line, "status");
    this.#status = Number(status);
    this.#isHttp10 = minor === "0";
    // We request no change of protocol, and HTTP/1.0 has no interim heads.
    if (this.#status === 101 || (this.#status < 200 && this.#isHttp10)) throw new MalformedResponse("interim status");
    this.#closes = this.#isHttp10;
    this.#isChunked = false;
    this.#length = undefined;
    this.#next = "field";
  }

  #readField(line: string): void {
    const [, name, value] = match(fieldLine, line, "field");
    switch (name!.toLowerCase()) {
      case "content-length":
        if (this.#length !== undefined || !/^[\t ]*\d{1,15}[\t ]*$/.test(value!))
          throw new MalformedResponse("content-length");
        this.#length = Number(value);
        break;
      case "transfer-encoding":
        if (this.#isChunked || this.#isHttp10 || value!.trim().toLowerCase() !== "chunked")
          throw new MalformedResponse("transfer-encoding");
        this.#isChunked = true;
        break;
      case "connection":
        this.#closes ||= value!.split(",").some((option) => option.trim().toLowerCase() === "close");
    }
  }

  #endHead(): void {
    const status = this.#status;
    if (this.#isChunked && this.#length !== undefined) throw new MalformedResponse("two lengths");
    if (status < 200) {
      this.#next = "status";
      return;
    }
    const isBare = status === 204 || status === 304;
    if (this.#isChunked && !isBare) this.#expectLine("chunk", chunkLineBytesMax);
    else {
      this.#next = "none";
      this.#bytesLeft = isBare ? 0 : (this.#length ?? Infinity);
    }
    this.#sink!.onHead(status);
  }

  #readChunkLine(line: string): void {
    this.#bytesLeft = Number.parseInt(match(chunkLine, line, "chunk")[1]!, 16);
    if (this.#bytesLeft === 0) this.#expectLine("trailer", headBytesMax);
    else this.#expectLine("chunk end", "\r\n".length);
  }
}

function match(pattern: RegExp, line: string, what: string): RegExpExecArray {
  const parts = pattern.exec(line);
  if (!parts) throw new MalformedResponse(what);
  return parts;
}
