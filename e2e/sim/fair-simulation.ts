/** Simulates accounts that share the places of one engine, on virtual time, with the production slot. */
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { asId, type AccountId, type ModelId } from "@weiche/shared/ids.ts";
import { costOf, type TokensUsed } from "@weiche/node-agent/src/slots/fair-shares.ts";
import type { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { noFaults } from "./sim-host.ts";
import { SlotWorld, usualLimits } from "./slot-world.ts";

const model = asId<ModelId>("a");
/** Weighted tokens that a running answer generates per second. */
const tokensPerSecond = 40;
const promptTokens = 500;

interface FairOptions {
  readonly places: number;
  readonly seed: number;
  /** Defaults to the real transition. */
  readonly transition?: () => typeof transition;
}

interface Asking {
  readonly account: string;
  readonly answers?: number;
  /** The shortest and longest duration of an answer. */
  readonly seconds: readonly [number, number];
}

export class FairSimulation {
  readonly world: SlotWorld;
  readonly random: Random;
  /** Weighted tokens of each account's finished requests. */
  readonly used = new Map<string, number>();

  constructor({ places, seed, transition }: FairOptions) {
    this.random = createRandom(seed);
    this.world = new SlotWorld({
      seed,
      models: new Map([[model, { sleeps: false, places }]]),
      limits: usualLimits,
      times: {
        startMs: [10, 11],
        wakeMs: [10, 11],
        stopMs: [10, 11],
        probeMs: [1, 2],
        newsMs: [0, 1],
        crashMs: [1, 2],
        lateMs: [0, 1],
      },
      faults: noFaults,
      longestRunMs: 60_000,
      transition,
    });
  }

  /** Sends one request. Resolves with its wait in seconds, or `Infinity` if it was refused. */
  ask({ account, answers = 1, seconds: [shortest, longest] }: Asking): Promise<number> {
    const runMs = 1_000 * (shortest + this.random.next() * (longest - shortest));
    const used: TokensUsed = {
      promptTokens,
      completionTokens: Math.round((answers * runMs * tokensPerSecond) / 1_000),
    };
    return new Promise((resolve) => {
      const request = this.world.visit({
        ...{ model, account: asId<AccountId>(account), answers, runMs, used },
        onEnd: () => {
          const { kind, atMs } = request.answer!;
          if (kind !== "admitted") return resolve(Infinity);
          this.used.set(account, (this.used.get(account) ?? 0) + costOf(used));
          resolve((atMs - request.sinceMs) / 1_000);
        },
      });
    });
  }

  /** Adds an account that always has this many concurrent requests. */
  keepAsking(atOnce: number, asking: Asking): void {
    const keep = async () => {
      for (;;) await this.ask(asking);
    };
    for (let count = 0; count < atOnce; count++) void keep();
  }

  /**
   * Adds accounts that come one after the other with this many concurrent requests each. Returns the waits of their
   * first requests.
   */
  comers(gapSeconds: number, asking: Omit<Asking, "account">, { accounts = Infinity, atOnce = 1 } = {}): number[] {
    const waits: number[] = [];
    const { clock } = this.world;
    let count = 0;
    const come = () => {
      const account = `comer-${count++ % accounts}`;
      const asked = Array.from({ length: atOnce }, () => this.ask({ account, ...asking }));
      void Promise.all(asked).then((each) => waits.push(Math.min(...each)));
      clock.after(this.#gapMs(gapSeconds), come);
    };
    clock.after(this.#gapMs(gapSeconds), come);
    return waits;
  }

  #gapMs(meanSeconds: number): number {
    return -Math.log(1 - this.random.next()) * meanSeconds * 1_000;
  }

  /** Advances the time. Throws if a rule of slots was broken. */
  async pass(seconds: number): Promise<void> {
    const { clock, rules } = this.world;
    if (!(await this.world.advanceTo(clock.monotonicMs() + seconds * 1_000))) throw new Error(rules.broken);
  }

  /** Advances the time. Returns each account's usage in this time. */
  async usedWithin(seconds: number): Promise<ReadonlyMap<string, number>> {
    const before = new Map(this.used);
    await this.pass(seconds);
    return new Map([...this.used].map(([account, used]) => [account, used - (before.get(account) ?? 0)]));
  }
}

/** Returns Jain's index: 1 if all shares are equal, 1/n if one account has everything. */
export function jainIndex(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  return sum ** 2 / (shares.length * shares.reduce((total, share) => total + share ** 2, 0));
}

/** Returns the value that this share of the values does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(share * values.length) - 1]!;
}
