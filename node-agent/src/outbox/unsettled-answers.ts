/**
 * Finished answers that are not settled: their router has not confirmed that the client got them. A living router voids
 * answers that its clients did not get. When a router dies, this agent voids its unsettled answers.
 *
 *   finished ──settled──▶ forgotten          the record counts
 *      ├── the router links again, or ended its link in order ──▶ forgotten
 *      └── the router is gone ──▶ void        another router answers at its address, or 30 s without link or connection
 */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { TransientMap } from "@weiche/shared/transient-map.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

interface UnsettledAnswersOptions {
  readonly clock: Clock;
  readonly append: (record: UsageRecord) => Promise<void>;
  readonly events: UnsettledAnswersEvents;
}

export interface UnsettledAnswersEvents {
  /** A router died before it settled these answers, so they cost nothing. */
  answersVoided(routerId: string, answers: number): void;
}

/** An attempt as a router names it. It is not checked, because it is only looked up. */
interface NamedAttempt {
  readonly requestId: string;
  readonly attempt: number;
}

/** Events of the links that show whether a router is alive. */
export type RouterLives = Pick<UnsettledAnswers, "linkUp" | "linkDown" | "replaced" | "settled" | "dataConnections">;

const goneMs = 30_000;
/**
 * The limit for each router. A router settles within milliseconds. Above the limit the oldest answers are forgotten,
 * and their records are billed.
 */
const answersMax = 100_000;

interface Router {
  isLinked: boolean;
  goneTimer: Timer | undefined;
  readonly answers: TransientMap<string, UsageRecord>;
}

export class UnsettledAnswers implements AsyncDisposable {
  readonly #options: UnsettledAnswersOptions;
  readonly #routers = new Map<string, Router>();
  readonly #withDataConnection = new Set<string>();

  constructor(options: UnsettledAnswersOptions) {
    this.#options = options;
  }

  get size(): number {
    return [...this.#routers.values()].reduce((sum, { answers }) => sum + answers.size, 0);
  }

  /** Call this before the last byte is sent, because the router may settle at once. */
  finished(routerId: string, record: UsageRecord): void {
    const router = this.#router(routerId);
    if (router.answers.size >= answersMax) router.answers.delete(router.answers.keys().next().value!);
    router.answers.set(keyOf(record), record);
    this.#waitForLink(routerId, router);
  }

  settled(routerId: string, attempts: readonly NamedAttempt[]): void {
    const answers = this.#routers.get(routerId)?.answers;
    for (const attempt of attempts) answers?.delete(keyOf(attempt));
  }

  linkUp(routerId: string): void {
    const router = this.#router(routerId);
    router.isLinked = true;
    router.goneTimer?.cancel();
    router.goneTimer = undefined;
    router.answers.clear();
  }

  /** `inOrder`: the router ended the link itself, and has voided the answers that its clients did not get. */
  linkDown(routerId: string, inOrder: boolean): void {
    const router = this.#router(routerId);
    router.isLinked = false;
    if (inOrder) router.answers.clear();
    this.#waitForLink(routerId, router);
  }

  /**
   * Sets the number of open data connections to the router. While there is one, the router is alive, even without a
   * link.
   */
  dataConnections(routerId: string, sessions: number): void {
    if (sessions > 0) this.#withDataConnection.add(routerId);
    else this.#withDataConnection.delete(routerId);
  }

  /** Another router now answers at this router's address. */
  replaced(routerId: string): void {
    if (!this.#withDataConnection.has(routerId)) void this.#declareVoid(routerId);
  }

  /** Voids the answers of dead routers when this agent stops. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#routers.keys()].map((routerId) => this.#declareVoid(routerId)));
  }

  #router(routerId: string): Router {
    const unlinked = (): Router => ({ isLinked: false, goneTimer: undefined, answers: new TransientMap() });
    return this.#routers.getOrInsertComputed(routerId, unlinked);
  }

  #waitForLink(routerId: string, router: Router): void {
    if (router.isLinked || router.goneTimer) return;
    router.goneTimer = this.#options.clock.after(goneMs, () => {
      router.goneTimer = undefined;
      if (this.#withDataConnection.has(routerId)) this.#waitForLink(routerId, router);
      else void this.#declareVoid(routerId);
    });
  }

  async #declareVoid(routerId: string): Promise<void> {
    const router = this.#routers.get(routerId);
    if (!router || router.isLinked) return;
    router.goneTimer?.cancel();
    this.#routers.delete(routerId);
    if (router.answers.size === 0) return;
    this.#options.events.answersVoided(routerId, router.answers.size);
    await Promise.allSettled([...router.answers.values()].map((record) => this.#options.append(voidOf(record))));
  }
}

function voidOf(record: UsageRecord): UsageRecord {
  return { ...record, outcome: "void", promptTokens: 0, completionTokens: 0 };
}

function keyOf({ requestId, attempt }: NamedAttempt): string {
  return `${requestId} ${attempt}`;
}
