/** An engine that sends exactly the bytes of a test, and the words in which engines answer. */
import { createServer, type Server, type Socket } from "node:net";

/** Writes to a connection of the engine after a complete request has arrived. */
export type EngineScript = (socket: Socket, request: EngineSaw) => void;

export interface EngineSaw {
  readonly path: string;
  readonly headers: string;
  readonly body: Record<string, unknown>;
}

/** An engine that sends exactly the bytes of its script. */
export class ScriptedEngine {
  readonly server: Server;
  readonly saw: EngineSaw[] = [];
  readonly sockets = new Set<Socket>();
  /** The connection of each request, in the order of `saw`. */
  readonly asked: Socket[] = [];
  connections = 0;
  script: EngineScript;

  constructor(script: EngineScript) {
    this.script = script;
    this.server = createServer({ noDelay: true }, (socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.sockets.delete(socket));
      let bytes = Buffer.alloc(0);
      socket.on("data", (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk]);
        const headEnd = bytes.indexOf("\r\n\r\n");
        const length = Number(/content-length: (\d+)/i.exec(bytes.toString("latin1", 0, headEnd))?.[1] ?? 0);
        if (headEnd < 0 || bytes.length < headEnd + 4 + length) return;
        const head = bytes.toString("latin1", 0, headEnd);
        const body = JSON.parse(bytes.toString("utf8", headEnd + 4, headEnd + 4 + length) || "{}") as object;
        bytes = bytes.subarray(headEnd + 4 + length);
        const request = { path: head.split(" ")[1]!, headers: head, body: body as Record<string, unknown> };
        this.saw.push(request);
        this.asked.push(socket);
        this.script(socket, request);
      });
    });
  }
}

export function httpHead(status: number, headers: Record<string, string | number>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} X\r\n${lines.join("")}\r\n`;
}

/** Sends an answer of known length, after which the connection stays open. */
export function respond(socket: Socket, status: number, body: string | Buffer, type = "application/json"): void {
  const bytes = Buffer.from(body);
  socket.write(
    Buffer.concat([Buffer.from(httpHead(status, { "content-type": type, "content-length": bytes.length })), bytes]),
  );
}

export function beginEvents(socket: Socket): void {
  socket.write(httpHead(200, { "content-type": "text/event-stream", "transfer-encoding": "chunked" }));
}

export function writeChunk(socket: Socket, text: string | Buffer): void {
  const bytes = Buffer.from(text);
  socket.write(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]));
}

export function endEvents(socket: Socket): void {
  socket.write("0\r\n\r\n");
}

/** Sends a complete event stream at once. */
export function respondEvents(socket: Socket, text: string | Buffer): void {
  beginEvents(socket);
  writeChunk(socket, text);
  endEvents(socket);
}

/** Returns a script that begins an answer with this text, and sends nothing more. */
export function saying(text: string | Buffer): (socket: Socket) => void {
  return (socket) => {
    beginEvents(socket);
    writeChunk(socket, text);
  };
}

export function event(value: unknown): string {
  return `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
}

/** Returns an event of a chat with one answer. `more`: further fields of the event. */
export function delta(value: object, finish: string | null = null, more: object = {}): string {
  return event({ choices: [{ index: 0, delta: value, finish_reason: finish }], ...more });
}

/** Returns the last event but one of a stream. */
export function usageEvent(prompt: number, completion: number): string {
  return event({ choices: [], usage: usageOf(prompt, completion) });
}

export function usageOf(prompt: number, completion: number) {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

export const done = event("[DONE]");
