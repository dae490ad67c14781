/** Simulates a limit store on virtual time. It can be silent like a stopped process, refuse like a replica or lose data. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";
import { leaseMs } from "../../src/limits/limit-scripts.ts";
import type { LimitStore, StoreDecision } from "../../src/limits/limit-store.ts";
import type { AccountLimits } from "../../src/limits/limiter.ts";
import { secondsToWait, ToldTimes, windowMs } from "../../src/limits/told-times.ts";

interface Known {
  /** Newest first. */
  readonly times: number[];
  /** The ends of leases by router and request. */
  readonly live: Map<string, number>;
  /** The retry times given to refused requests. */
  readonly told: number[];
}

export class SimulatedStore {
  /** `unread`: the store has answered, but the asking process has not read the answer yet. */
  fault: "none" | "silent" | "refusing" | "unread" = "none";
  /** How many commands were sent. */
  asked = 0;
  readonly #clock: Clock;
  #accounts = new Map<AccountId, Known>();
  #unread: (() => void)[] = [];
  readonly #onLost: ((why: Error) => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the fault. A silent store now reads the commands sent meanwhile. */
  heal(): void {
    this.fault = "none";
    for (const read of this.#unread.splice(0)) read();
  }

  flush(): void {
    this.#accounts.clear();
  }

  /** Copies the data to a replica. The returned function makes this replica the primary. */
  replicate(): () => void {
    const copy = structuredClone(this.#accounts);
    return () => {
      this.#accounts = structuredClone(copy);
      this.#unread = [];
      this.fault = "none";
      for (const lost of this.#onLost) lost(new Error("failed over"));
    };
  }

  of(router: string): LimitStore {
    const prefix = `${router}:`;
    return {
      enter: (account, request, limits) => this.#told(() => this.#enter(account, prefix + request, limits)),
      tell: (account, _request, limits, known) => this.#told(() => this.#tell(account, limits, known)),
      leave: (account, request) => this.#told(() => this.#knownOf(account).live.delete(prefix + request)),
      renew: (account, requests) => {
        const ids = Array.from(requests(), ([request, isHeld]) => [prefix + request, isHeld] as const);
        return this.#told(() => this.#renew(account, prefix, ids));
      },
      onLost: (callback) => void this.#onLost.push(callback),
      use: (account) => this.#told(() => this.#use(account)),
      async [Symbol.asyncDispose]() {},
    };
  }

  #told<T>(command: () => T): Promise<T> {
    this.asked++;
    if (this.fault === "refusing") return Promise.reject(new Error("READONLY"));
    if (this.fault === "unread") return new Promise((resolve) => setImmediate(() => resolve(command())));
    if (this.fault === "none") return Promise.resolve(command());
    return new Promise((resolve) => this.#unread.push(() => resolve(command())));
  }

  #enter(account: AccountId, id: string, { perMinute, parallel }: AccountLimits): StoreDecision {
    const { times, live } = this.#knownOf(account);
    if (live.has(id)) return { admitted: true };
    const waitMs = (times[perMinute - 1] ?? -Infinity) + windowMs - this.#clock.now();
    if (waitMs > 0) return { admitted: false, limit: "minute", freeInMs: waitMs };
    if (live.size >= parallel) return { admitted: false, limit: "parallel" };
    times.unshift(this.#clock.now());
    live.set(id, this.#clock.now() + leaseMs);
    return { admitted: true };
  }

  /** Returns a retry time as if all running requests had just begun. */
  #tell(
    account: AccountId,
    limits: AccountLimits,
    { durationsMs, isRetry }: Parameters<LimitStore["tell"]>[3],
  ): number | undefined {
    const { times, live, told } = this.#knownOf(account);
    const nowMs = this.#clock.now();
    const toldTimes = new ToldTimes();
    for (const atMs of told.splice(0)) toldTimes.add(atMs);
    const hasComeBack = toldTimes.comeBack(nowMs) || isRetry;
    const running = { hasComeBack, admittedAtMs: times, begunAtMs: Array.from(live, () => nowMs) };
    const seconds = secondsToWait({ ...running, toldAtMs: toldTimes.atMs, durationsMs }, limits, nowMs);
    if (seconds !== undefined) toldTimes.add(nowMs + seconds * 1_000);
    told.push(...toldTimes.atMs);
    return seconds === undefined ? undefined : seconds * 1_000;
  }

  #renew(account: AccountId, prefix: string, ids: readonly (readonly [string, boolean])[]): void {
    const { live } = this.#knownOf(account);
    const kept = ids.filter(([id, isHeld]) => isHeld || live.has(id));
    for (const id of live.keys()) if (id.startsWith(prefix)) live.delete(id);
    for (const [id] of kept) live.set(id, this.#clock.now() + leaseMs);
  }

  #use(account: AccountId) {
    const { times, live } = this.#knownOf(account);
    return { lastMinute: times.filter((at) => at > this.#clock.now() - windowMs).length, parallel: live.size };
  }

  #knownOf(account: AccountId): Known {
    const known = this.#accounts.get(account) ?? { times: [], live: new Map<string, number>(), told: [] };
    this.#accounts.set(account, known);
    for (const [id, endMs] of known.live) if (endMs <= this.#clock.now()) known.live.delete(id);
    return known;
  }
}

export function requestOf(n: number): RequestId {
  return `r${n}` as RequestId;
}
