/** Changes the level of a log for a limited time. */
import type { Clock, Timer } from "../time/clock.ts";
import { inWords } from "./duration.ts";
import type { Log } from "./log.ts";

export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogLevelState {
  readonly level: string;
  /** The next level, and the seconds until it applies. Undefined if the current level stays. */
  readonly then?: { readonly level: string; readonly seconds: number };
}

/** Longest time for which another level may be set, because a forgotten `debug` fills disks. */
export const logLevelSecondsMax = 86_400;

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

  /** Sets a level for a time. Replaces an earlier setting. The configured level returns afterwards. */
  set(level: LogLevel, seconds: number): LogLevelState {
    this[Symbol.dispose]();
    this.#log.level = level;
    const timer = this.#clock.after(seconds * 1_000, () => this[Symbol.dispose]());
    this.#until = { timer, ms: this.#clock.monotonicMs() + seconds * 1_000 };
    return this.state;
  }

  /** Restores the configured level. */
  [Symbol.dispose](): void {
    this.#until?.timer.cancel();
    this.#until = undefined;
    this.#log.level = this.#usual;
  }
}

/** Returns a text such as `debug, back to info in 9 min 59 s`. */
export function logLevelText({ level, then }: LogLevelState): string {
  return then === undefined ? level : `${level}, back to ${then.level} in ${inWords(then.seconds)}`;
}
