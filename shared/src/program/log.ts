import { pino, type Logger } from "pino";
import type { Clock, Timer } from "../time/clock.ts";
import { isJournal, priorityOf } from "./journal.ts";
import { plainJson } from "./plain-text.ts";

export type Log = Logger;

/**
 * Logs JSON lines to stdout, asynchronously, so that a slow terminal never delays a stream. Nothing that a client sent
 * is ever logged: callers pass ids, names from closed sets and numbers. For the journal of systemd each line begins with
 * its priority, `<3>` for an error.
 */
export function createLog(name: string, level: string = "info"): Log {
  const fd = 1;
  const toJournal = isJournal(fd, process.env);
  return pino(
    {
      name,
      level,
      base: { name },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: (line) => (toJournal ? priorityOf(line) : "") + plainJson(line) },
    },
    pino.destination({ fd, sync: false }),
  );
}

export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogLevelState {
  readonly level: string;
  /** The one that it falls back to, and in how many seconds. Absent: it stays. */
  readonly then?: { readonly level: string; readonly seconds: number };
}

/** Longest time for which another level may be set: a forgotten `debug` fills disks. */
export const logLevelSecondsMax = 86_400;

/** Changes the level of a log for a while. */
export class LogLevelSwitch implements Disposable {
  readonly #log: Pick<Log, "level">;
  readonly #clock: Clock;
  readonly #usual: string;
  #until: { readonly timer: Timer; readonly ms: number } | undefined;

  constructor(log: Pick<Log, "level">, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
    this.#usual = log.level;
  }

  get state(): LogLevelState {
    const { level } = this.#log;
    if (!this.#until) return { level };
    const seconds = Math.max(0, Math.ceil((this.#until.ms - this.#clock.monotonicMs()) / 1_000));
    return { level, then: { level: this.#usual, seconds } };
  }

  /** Replaces what was set before. Falls back to the configured level by itself. */
  set(level: LogLevel, seconds: number): LogLevelState {
    this[Symbol.dispose]();
    this.#log.level = level;
    const timer = this.#clock.after(seconds * 1_000, () => this[Symbol.dispose]());
    this.#until = { timer, ms: this.#clock.monotonicMs() + seconds * 1_000 };
    return this.state;
  }

  /** Goes back to the configured level. */
  [Symbol.dispose](): void {
    this.#until?.timer.cancel();
    this.#until = undefined;
    this.#log.level = this.#usual;
  }
}

/** The fields of an error that may be logged: name, message, code; never a body. */
export function describeError(error: unknown): { readonly error: string; readonly code?: string } {
  if (!(error instanceof Error)) return { error: String(error) };
  const code = (error as { code?: unknown }).code;
  const text = `${error.name}: ${error.message}`;
  return typeof code === "string" ? { error: text, code } : { error: text };
}
