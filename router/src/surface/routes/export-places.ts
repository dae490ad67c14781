/**
 * Limits exports, because each holds a database connection: few run at once, one per account, and one more per account may
 * wait, in the order of arrival. Asking more often gives no account more. A client that leaves loses its place. While another
 * account waits, an export with a slow client gives way. So does an export that has waited for its client for `turnMs`, so
 * that an account gets a place within `waitMsMax`, however slowly two others read.
 */
import { every, type Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";

const atOnceMax = 2;
const waitingMax = 32;
export const waitMsMax = 30_000;
/** The time for which an export may wait for its client while another account waits for a place. */
export const turnMs = 25_000;

/** The pace of an export is measured over this much time. Only time in which pieces wait for the client counts. */
export const paceMs = 3_000;
/** A client that takes fewer bytes in `paceMs` is slow. Socket buffers alone take more at the beginning. */
export const paceBytesMin = 300_000;
const lookMs = 500;

interface Waiting {
  readonly account: string;
  readonly enter: (place: ExportPlace) => void;
}

export type ExportPlaces = ReturnType<typeof createExportPlaces>;

export class ExportPlace implements Disposable {
  /** Is called when the export must end to free its place. */
  onGiveWay: () => void = () => {};
  hasGivenWay = false;
  #isSlow = false;
  /** When the waiting piece was offered to the client. */
  #offeredAtMs: number | undefined;
  /** Time for which pieces waited for the client since the last measurement. */
  #waitedMs = 0;
  #tookBytes = 0;
  /** All time for which pieces waited for the client. */
  #clientMs = 0;
  readonly #clock: Clock;
  readonly #leave: () => void;

  constructor(clock: Clock, leave: () => void) {
    this.#clock = clock;
    this.#leave = leave;
  }

  [Symbol.dispose](): void {
    this.#leave();
  }

  /** Offers a piece to the client, which has to take it from now on. */
  offer(): void {
    this.#offeredAtMs = this.#clock.monotonicMs();
  }

  /** Is called when the client has taken the piece. */
  took(bytes: number): void {
    this.#measure();
    this.#offeredAtMs = undefined;
    this.#tookBytes += bytes;
  }

  /** The client is slow. */
  get isSlow(): boolean {
    this.#measure();
    return this.#isSlow;
  }

  /** The export has waited for its client as long as it may while another account waits. */
  get isLong(): boolean {
    this.#measure();
    return this.#clientMs >= turnMs;
  }

  giveWay(): void {
    if (this.hasGivenWay) return;
    this.hasGivenWay = true;
    this.onGiveWay();
  }

  #measure(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#offeredAtMs !== undefined) {
      this.#waitedMs += nowMs - this.#offeredAtMs;
      this.#clientMs += nowMs - this.#offeredAtMs;
      this.#offeredAtMs = nowMs;
    }
    if (this.#waitedMs < paceMs) return;
    this.#isSlow = this.#tookBytes < (paceBytesMin * this.#waitedMs) / paceMs;
    this.#waitedMs = 0;
    this.#tookBytes = 0;
  }
}

/**
 * Returns a function that takes a place until the place is disposed. It rejects with `ApiError` after `waitMsMax` or if too
 * many wait, and with the signal's reason if the signal aborts.
 */
export function createExportPlaces(clock: Clock) {
  const exporting = new Map<string, ExportPlace>();
  const line: Waiting[] = [];
  const isFree = (account: string) => exporting.size < atOnceMax && !exporting.has(account);

  function enter(account: string): ExportPlace {
    const place = new ExportPlace(clock, () => leave(account));
    exporting.set(account, place);
    return place;
  }

  /** Ends one export if another account waits: a slow one, or else the oldest that has had its turn. */
  function makeRoom(): void {
    if (exporting.size < atOnceMax || line.every(({ account }) => exporting.has(account))) return;
    const places = [...exporting.values()];
    if (places.some(({ hasGivenWay }) => hasGivenWay)) return;
    (places.find(({ isSlow }) => isSlow) ?? places.find(({ isLong }) => isLong))?.giveWay();
  }

  async function wait(account: string, signal: AbortSignal): Promise<ExportPlace> {
    if (line.length >= waitingMax || line.some((waiting) => waiting.account === account)) throw busy();
    const { promise, resolve, reject } = Promise.withResolvers<ExportPlace>();
    const waiting: Waiting = { account, enter: resolve };
    const giveUp = (reason: Error) => {
      const place = line.indexOf(waiting);
      if (place >= 0) line.splice(place, 1);
      reject(reason);
    };
    const deadline = clock.after(waitMsMax, () => giveUp(busy()));
    const left = () => giveUp(signal.reason as Error);
    signal.addEventListener("abort", left);
    line.push(waiting);
    makeRoom();
    const looks = every(clock, lookMs, makeRoom);
    return promise.finally(() => {
      looks.cancel();
      deadline.cancel();
      signal.removeEventListener("abort", left);
    });
  }

  function leave(account: string): void {
    exporting.delete(account);
    const isOwn = (waiting: Waiting) => waiting.account === account;
    // Other accounts first. Otherwise the account's next export would take the place that this export gave up.
    for (const waiting of [...line.filter((each) => !isOwn(each)), ...line.filter(isOwn)]) {
      if (!isFree(waiting.account)) continue;
      line.splice(line.indexOf(waiting), 1);
      waiting.enter(enter(waiting.account));
    }
  }

  return async (account: string, signal: AbortSignal): Promise<ExportPlace> => {
    signal.throwIfAborted();
    return isFree(account) ? enter(account) : wait(account, signal);
  };
}

function busy(): ApiError {
  return new ApiError(
    "overloaded",
    "Other exports are running. Each account can run one at a time. Try again in a few seconds.",
    { retryAfterSeconds: 5 },
  );
}
