/**
 * The latest facts about the machine: its inventory, taken once, and its readings, taken repeatedly. Each has a thread.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { AskedThread } from "./asked-thread.ts";
import type { KeptPath } from "./file-systems.ts";
import type { Machine, MachineReading } from "@weiche/shared/machine.ts";
import type { ReadingThreadData } from "./reading-thread.ts";

/** `inventory` lists the hardware of the host, and `reading` measures its load. */
type MachineThread = "inventory" | "reading";

export interface MachineTelemetryEvents {
  /** A thread died or hung. Its measurement is missing until the next one. */
  machineThreadLost(thread: MachineThread, reason: string): void;
}

interface MachineTelemetryOptions {
  readonly clock: Clock;
  readonly kept: readonly KeptPath[];
  /** The variable PATH, which is used to find programs. */
  readonly path: string | undefined;
  readonly events: MachineTelemetryEvents;
  /** The threads' modules. */
  readonly programs?: Readonly<Record<MachineThread, URL>>;
}

export interface MachineSource {
  /** Undefined until the inventory was taken. */
  readonly machine?: Machine;
  /** Undefined until it was read, and while it cannot be read. */
  readonly reading?: MachineReading;
}

export const readEveryMs = 15_000;
/** The pause after a failure. The next attempt usually fails again, and each starts many programs. */
export const takeStockAgainMs = 600_000;

/** Each program has 5 s. Usually all of them together take less than one. */
const takeStockMsMax = 60_000;
const readMsMax = 10_000;

const ownPrograms = {
  inventory: new URL("./inventory-thread.ts", import.meta.url),
  reading: new URL("./reading-thread.ts", import.meta.url),
};

export class MachineTelemetry implements MachineSource, AsyncDisposable {
  machine: Machine | undefined;
  reading: MachineReading | undefined;
  readonly #inventory: AskedThread<Machine>;
  readonly #reading: AskedThread<MachineReading>;

  constructor({ clock, kept, path, events, programs = ownPrograms }: MachineTelemetryOptions) {
    const thread = <Answer>(name: MachineThread, answerMsMax: number, data?: ReadingThreadData) => {
      const onLost = (reason: string) => events.machineThreadLost(name, reason);
      return new AskedThread<Answer>({ clock, path, program: programs[name], data, answerMsMax, onLost });
    };
    this.#inventory = thread("inventory", takeStockMsMax);
    this.#reading = thread("reading", readMsMax, { kept });
  }

  /** Takes the inventory, unless it is known. Rejects if that fails. */
  async takeStock(): Promise<void> {
    this.machine ??= await this.#inventory.ask();
  }

  /** Reads the load. Rejects if the host does not answer, and earlier values then no longer count. */
  async read(): Promise<void> {
    this.reading = await this.#reading.ask().catch((error: unknown) => {
      this.reading = undefined;
      throw error;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#inventory[Symbol.asyncDispose](), this.#reading[Symbol.asyncDispose]()]);
  }
}
