/** Clients that write raw bytes, with or without TLS, and functions that wait for the result. */
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** Keeps the received bytes. It does not close its side of the connection. */
export class RawClient {
  readonly socket: Socket;
  received = "";
  /** The server has ended its side. */
  isEnded = false;
  isClosed = false;

  constructor(port: number, isTls = false) {
    const to = { port, host: "127.0.0.1", allowHalfOpen: true };
    this.socket = isTls ? connectTls({ ...to, rejectUnauthorized: false }) : connectTcp(to);
    this.socket.setNoDelay();
    this.socket.on("data", (bytes: Buffer) => (this.received += bytes.toString("latin1")));
    this.socket.on("end", () => (this.isEnded = true)).on("close", () => (this.isClosed = true));
    this.socket.on("error", () => {});
  }

  get statuses(): string[] {
    return this.received.match(/(?<=HTTP\/1\.1 )\d+/g) ?? [];
  }

  send(...parts: (string | Buffer)[]): this {
    for (const part of parts) this.socket.write(part);
    return this;
  }

  /** Returns everything received until the server ends the connection. */
  async all(boundMs = 10_000): Promise<string> {
    await until(() => this.isEnded || this.socket.destroyed, boundMs);
    this.socket.destroy();
    return this.received;
  }
}

export function rawPost(path: string, body: string, headers: readonly string[] = []): string {
  const head = [
    `POST ${path} HTTP/1.1`,
    "host: x",
    "authorization: Bearer sk-good",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** Waits for a condition; throws after a bound. */
export async function until(condition: () => boolean, boundMs = 5_000): Promise<void> {
  const endsAt = performance.now() + boundMs;
  while (!condition()) {
    if (performance.now() > endsAt) throw new Error(`not within ${boundMs} ms: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Waits until a count has stopped growing, and returns it. */
export async function settledCount(count: () => number): Promise<number> {
  for (let before = -1; before !== count(); await new Promise((resolve) => setTimeout(resolve, 100))) before = count();
  return count();
}
