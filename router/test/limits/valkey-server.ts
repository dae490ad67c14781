/** Starts Valkey, or Redis if only this is installed, as a process that a test can stop, kill and start again. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "iovalkey";
import { findProgram } from "@weiche/shared/testing/needs.ts";

const answerMsMax = 10_000;

export class ValkeyServer implements AsyncDisposable {
  readonly port: number;
  readonly #options: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), "weiche-valkey-"));
  #process!: ChildProcess;

  private constructor(port: number, options: readonly string[]) {
    this.port = port;
    this.#options = options;
  }

  /** Starts a server with these command-line options. A configuration file comes first. */
  static async start(...options: readonly string[]): Promise<ValkeyServer> {
    const server = new ValkeyServer(await freePort(), options);
    await server.startAgain();
    return server;
  }

  get url(): string {
    return `valkey://127.0.0.1:${this.port}`;
  }

  /** Starts the server again without data, on the same port. */
  async startAgain(): Promise<void> {
    const usual = ["--port", String(this.port), "--save", "", "--dir", this.#folder, "--bind", "127.0.0.1"];
    this.#process = spawn(findProgram("valkey-server")!, [...this.#options, ...usual], { stdio: "ignore" });
    for (const untilMs = performance.now() + answerMsMax; ; await sleep(10)) {
      if (this.#process.exitCode !== null) throw new Error("the server has ended: is its port in use?");
      if (await answers(this.port)) return;
      if (performance.now() > untilMs) throw new Error("the server does not answer");
    }
  }

  /** Sends a command to the server and returns the reply. */
  async tell(...words: readonly string[]): Promise<unknown> {
    const client = new Redis({ port: this.port, retryStrategy: () => null });
    client.on("error", () => {}); // the command rejects with the same error
    try {
      return await client.call(words[0]!, ...words.slice(1));
    } finally {
      client.disconnect();
    }
  }

  /** Sends a signal. After SIGSTOP the connections stay open, but the server does not answer. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#process.kill(signal);
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    if (this.#process.exitCode === null && this.#process.signalCode === null) await once(this.#process, "exit");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export async function freePort(): Promise<number> {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  taken.close();
  await once(taken, "close");
  return port;
}

/** Returns whether the server answers, even if it only asks for a password. */
async function answers(port: number): Promise<boolean> {
  const client = new Redis({ port, retryStrategy: () => null, enableReadyCheck: false, lazyConnect: true });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.ping()) === "PONG";
  } catch (error) {
    return /NOAUTH/.test((error as Error).message);
  } finally {
    client.disconnect();
  }
}
