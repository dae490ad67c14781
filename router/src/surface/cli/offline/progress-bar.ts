/** Shows the progress of a long computation on a terminal, and lets Ctrl-C end it early. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { Terminal } from "../terminal.ts";

interface Shown {
  readonly groups: readonly { readonly slots: number }[];
  /** The share of this step that is done. */
  readonly share: number;
}

const width = 24;
/** A bar that changes faster cannot be read. */
const everyMs = 100;

export class ProgressBar {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  #isStopped = false;
  #slots: number | undefined;
  #beganMs = 0;
  #shownMs = -Infinity;
  readonly #onSignal = () => (this.#isStopped = true);

  constructor(terminal: Terminal, clock: Clock) {
    this.#terminal = terminal;
    this.#clock = clock;
  }

  /** Lets signals be handled. Resolves with whether to continue. */
  async show({ groups, share }: Shown): Promise<boolean> {
    // Before the first step, Ctrl-C ends the program, because nothing is known yet.
    if (this.#slots === undefined) process.once("SIGINT", this.#onSignal);
    const nowMs = this.#clock.monotonicMs();
    const slots = groups.reduce((sum, group) => sum + group.slots, 0);
    if (slots !== this.#slots) [this.#slots, this.#beganMs] = [slots, nowMs];
    if (this.#terminal.errors.isTTY && nowMs - this.#shownMs >= everyMs) {
      this.#shownMs = nowMs;
      const full = Math.floor(share * width);
      const leftSeconds =
        share > 0.02 ? Math.ceil((((nowMs - this.#beganMs) / share) * (1 - share)) / 1_000) : undefined;
      const left = leftSeconds === undefined ? "" : `, ${leftSeconds} s left`;
      this.#terminal.errors.write(`\r[${"█".repeat(full)}${" ".repeat(width - full)}] ${slots} slots${left}\x1b[K`);
    }
    await new Promise<void>((resolve) => setImmediate(resolve));
    return !this.#isStopped;
  }

  clear(): void {
    if (this.#terminal.errors.isTTY) this.#terminal.errors.write("\r\x1b[K");
  }

  [Symbol.dispose](): void {
    process.off("SIGINT", this.#onSignal);
  }
}
