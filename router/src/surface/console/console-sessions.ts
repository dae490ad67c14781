/**
 * The console's sessions, and the codes in links that are exchanged for sessions. A code works once, within a minute.
 * Only hashes of both are stored. Sessions are in a file of the router's directory, so that they survive its restart.
 */
import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { parseJson } from "@weiche/shared/json.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import { hashToken, makeToken } from "../../sign-in/secret-token.ts";

export const codeMsMax = 60_000;
/** Length of a session, enough for a long shift. Requests do not extend it. */
export const sessionMsMax = 12 * 3_600_000;
/** Above these numbers, the oldest code or session ends. */
const codesMax = 32;
const sessionsMax = 64;
const saveAgainMs = 5_000;

export interface ConsoleSession {
  readonly endsAtMs: number;
  /** Aborts when the session ends. */
  readonly ended: AbortSignal;
}

interface Kept {
  readonly endsAtMs: number;
  readonly end: AbortController;
  readonly timer: Timer;
}

export interface ConsoleSessionEvents {
  /** The file cannot be written, so a restart of the router will end the sessions. */
  consoleSessionsNotSaved(error: unknown): void;
}

export class ConsoleSessions implements AsyncDisposable {
  readonly #file: string;
  readonly #clock: Clock;
  readonly #saving: SingleFlight;
  /** When each code expires, in monotonic ms, by the code's hash. */
  readonly #codes = new Map<string, number>();
  /** Sessions by the hash of their token. The oldest comes first. */
  readonly #sessions = new Map<string, Kept>();

  constructor(file: string, clock: Clock, events: ConsoleSessionEvents) {
    this.#file = file;
    this.#clock = clock;
    const save = () => this.#save().catch((error: unknown) => events.consoleSessionsNotSaved(error));
    this.#saving = new SingleFlight(clock, save, saveAgainMs);
    for (const [hash, endsAtMs] of readSessions(file)) if (endsAtMs > clock.now()) this.#keep(hash, endsAtMs);
  }

  /** Makes a code. Returns it with its expiry. */
  makeCode(): { readonly code: string; readonly expiresAtMs: number } {
    const code = makeToken();
    this.#codes.set(hashToken(code), this.#clock.monotonicMs() + codeMsMax);
    forgetOldest(this.#codes, codesMax);
    return { code, expiresAtMs: this.#clock.now() + codeMsMax };
  }

  /** Exchanges a code for a session. Returns undefined if the code is wrong, used or expired. */
  exchange(code: string): { readonly token: string; readonly endsAtMs: number } | undefined {
    const hash = hashToken(code);
    const untilMs = this.#codes.get(hash);
    this.#codes.delete(hash);
    if (untilMs === undefined || this.#clock.monotonicMs() >= untilMs) return undefined;
    const token = makeToken();
    const endsAtMs = this.#clock.now() + sessionMsMax;
    this.#keep(hashToken(token), endsAtMs);
    for (const oldest of [...this.#sessions.keys()].slice(0, -sessionsMax)) this.#end(oldest);
    this.#saving.wish(0);
    return { token, endsAtMs };
  }

  find(token: string): ConsoleSession | undefined {
    const found = this.#sessions.get(hashToken(token));
    if (!found || found.endsAtMs <= this.#clock.now()) return undefined;
    return { endsAtMs: found.endsAtMs, ended: found.end.signal };
  }

  end(token: string): void {
    this.#end(hashToken(token));
    this.#saving.wish(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { timer } of this.#sessions.values()) timer.cancel();
    await this.#saving[Symbol.asyncDispose]();
  }

  #keep(hash: string, endsAtMs: number): void {
    const timer = this.#clock.after(endsAtMs - this.#clock.now(), () => this.#end(hash));
    this.#sessions.set(hash, { endsAtMs, end: new AbortController(), timer });
  }

  #end(hash: string): void {
    const session = this.#sessions.get(hash);
    this.#sessions.delete(hash);
    session?.timer.cancel();
    session?.end.abort();
  }

  async #save(): Promise<void> {
    const sessions = [...this.#sessions].map(([hash, { endsAtMs }]) => [hash, endsAtMs]);
    await writeFile(`${this.#file}.new`, JSON.stringify(sessions), { mode: 0o600 });
    await rename(`${this.#file}.new`, this.#file);
  }
}

/** Reads the stored sessions. Ignores unreadable entries and files. */
function readSessions(file: string): readonly (readonly [hash: string, endsAtMs: number])[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return [];
  }
  const read = parseJson(text);
  if (!Array.isArray(read)) return [];
  return read.filter((each): each is [string, number] => typeof each?.[0] === "string" && Number.isFinite(each[1]));
}

function forgetOldest(map: Map<string, unknown>, max: number): void {
  for (const key of [...map.keys()].slice(0, -max)) map.delete(key);
}
