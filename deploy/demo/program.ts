/**
 * One of the two programs of `npm start`. Logs to a file, shows warnings on the screen, and restarts the program if it
 * dies.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { plainJson, plainText } from "@weiche/shared/program/plain-text.ts";

/** A program that dies within this time after its start is not restarted. */
const aliveMsMin = 2_000;
const lastWordsMsMax = 1_000;

export class Program implements AsyncDisposable {
  /** Whether its warnings are written only to its log. */
  quiet = false;
  readonly #name: string;
  readonly #args: readonly string[];
  #env: NodeJS.ProcessEnv;
  readonly #log: WriteStream;
  readonly #started = Promise.withResolvers<Record<string, string>>();
  #child: ChildProcess;
  #stopping = false;
  #isUp = false;
  /** The reason for a failed start, from its log. */
  #lastError: string | undefined;
  #gone = Promise.withResolvers<void>();

  constructor(name: string, args: readonly string[], logFile: string, env: NodeJS.ProcessEnv) {
    this.#name = name;
    this.#args = args;
    this.#env = env;
    this.#log = createWriteStream(logFile, { flags: "a", mode: 0o600 });
    this.#started.promise.catch(() => {});
    this.#child = this.#spawn();
  }

  /** Resolves with the addresses on which it listens. Rejects if it ends first, or if the start is interrupted. */
  listening(stop: { readonly signal: AbortSignal }): Promise<Record<string, string>> {
    const interrupted = new Promise<never>((_, reject) => {
      stop.signal.addEventListener("abort", () => reject(stop.signal.reason as Error), { once: true });
    });
    return Promise.race([this.#started.promise, interrupted]);
  }

  /** Stops the program and waits for its end. Can be called twice. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#stopping) this.#child.kill("SIGTERM");
    this.#stopping = true;
    await this.#gone.promise;
    this.#log.end();
  }

  /**
   * Starts it in its own process group, so that Ctrl-C reaches only `npm start`, which stops both programs in order.
   */
  #spawn(): ChildProcess {
    const startedMs = performance.now();
    const child = spawn(process.execPath, this.#args, {
      env: this.#env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    createInterface(child.stdout!).on("line", (line) => this.#line(line));
    const errors = createInterface(child.stderr!).on("line", (line) => {
      this.#log.write(`${line}\n`);
      this.#lastError = plainText(line).replace(/^[a-z-]+: /, "");
      if (this.#isUp) console.error(plainText(line));
    });
    child.once("exit", (code, signal) => {
      const livedMs = performance.now() - startedMs;
      // Its last lines may still be in the pipe, which the database may keep open longer.
      void Promise.race([once(errors, "close"), sleep(lastWordsMsMax)]).then(() => {
        this.#exited(signal ?? `exit code ${code}`, livedMs);
      });
    });
    return child;
  }

  #line(line: string): void {
    this.#log.write(`${line}\n`);
    if (!line.startsWith("{")) return;
    const entry = JSON.parse(line) as {
      level: string;
      msg: string;
      listen?: Record<string, string>;
      [key: string]: unknown;
    };
    if (entry.listen) {
      this.#isUp = true;
      this.#env = { ...this.#env, ...variablesOf(this.#name, entry.listen) };
      this.#started.resolve(entry.listen);
    }
    if (this.quiet || (!["warn", "error", "fatal"].includes(entry.level) && entry["show"] !== true)) return;
    const { level, msg, time: _time, name: _name, show, ...rest } = entry;
    console.error(
      `${this.#name}: ${show === true ? "" : `${level}: `}${plainText(msg)}${Object.keys(rest).length > 0 ? ` ${plainJson(JSON.stringify(rest))}` : ""}`,
    );
  }

  #exited(reason: string, livedMs: number): void {
    if (this.#stopping) return this.#gone.resolve();
    if (!this.#isUp || livedMs < aliveMsMin) {
      const why = `the ${this.#name} could not start: ${this.#lastError ?? reason}`;
      this.#gone.resolve();
      this.#started.reject(new StartError(why));
      if (!this.#isUp) return;
      console.error(`weiche: ${why}`);
      process.exitCode = 1;
      process.kill(process.pid, "SIGTERM");
      return;
    }
    console.error(`${this.#name} ended unexpectedly (${reason}); restarting it`);
    this.#child = this.#spawn();
  }
}

/** Sets the old addresses for a restart, because the other program knows them, even if they were free ports. */
function variablesOf(name: string, listen: Readonly<Record<string, string>>): Record<string, string> {
  const beginning = name === "router" ? "WEICHE" : "WEICHE_AGENT";
  return Object.fromEntries(
    Object.entries(listen).map(([what, address]) => [`${beginning}_${what.toUpperCase()}_LISTEN`, address]),
  );
}
