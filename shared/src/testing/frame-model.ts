/** The wire's rules from frames/README.md for one end, written independently of the code that they test. */

export const windowBytes = 262_144;
const cancelWords = ["unwanted", "refused", "internal"];

export interface KnownStream {
  readonly id: number;
  begun: boolean;
  ended: boolean;
  over: boolean;
  paused: boolean;
  /** Bytes that the peer may still send. */
  peerCredit: number;
  /** Bytes that were received and not yet acknowledged to the peer. */
  taken: number;
  /** Bytes that arrived while paused. */
  kept: number;
  credit: number;
  /** Whether the application got a DONE or END. */
  done: boolean;
  /** An END that has arrived, but that the application does not know yet. */
  pending: number | undefined;
}

/** A model of one end. `told`: the events that its application must get. */
export class FrameModel {
  readonly told: string[] = [];
  readonly known = new Map<number, KnownStream>();
  last = 0;
  broken: string | undefined;
  hasSaidGoAway = false;
  pings: string[] = [];
  readonly #isRouter: boolean;

  constructor(isRouter: boolean) {
    this.#isRouter = isRouter;
  }

  tell(what: string, id: number, more: string | number): void {
    const [before, of, bytes] = (this.told.at(-1) ?? "").split(" ");
    if (what === "data" && before === what && of === String(id)) this.told.pop();
    const sum = what === "data" && before === what && of === String(id) ? Number(bytes) : 0;
    this.told.push(`${what} ${id} ${what === "data" ? sum + Number(more) : more}`);
  }

  opened(id: number): KnownStream {
    const fresh = { begun: !this.#isRouter, done: false, ended: false, over: false, paused: true };
    const bytes = { peerCredit: windowBytes, taken: 0, kept: 0, credit: windowBytes };
    const one = { id, ...fresh, ...bytes, pending: undefined };
    this.known.set((this.last = id), one);
    return one;
  }

  /** Returns the rule that a frame would break. */
  rule(type: number, id: number, payload: Buffer): string | undefined {
    const most = [0, 16_384, 65_536, 1, 1, 4, 8, 8, 1_024, 0][type];
    const least = [0, 1, 1, 1, 1, 4, 8, 8, 0, 0][type]!;
    const isOfConnection = type >= 6 && type <= 8;
    if (type < 1 || most === undefined) return "type";
    if (payload.length > most || payload.length < least) return "length";
    if (isOfConnection !== (id === 0)) return "stream";
    if (isOfConnection) return undefined;
    if (type === 1 && !this.#isRouter) return id <= this.last ? "stream" : undefined;
    if (id > this.last) return "stream";
    const one = this.known.get(id);
    if (!one || one.over || type === 4) return undefined;
    if (type === 5) {
      const bytes = payload.readUInt32BE();
      return bytes === 0 || one.credit + bytes > windowBytes ? "credit" : undefined;
    }
    if (type === 9) return this.#isRouter ? undefined : "state";
    if (type === 1) return one.begun ? "state" : undefined;
    if (!one.begun || one.ended) return "state";
    return type === 2 && payload.length > one.peerCredit ? "credit" : undefined;
  }

  /** Receives a frame. */
  take(type: number, id: number, payload: Buffer): void {
    if (this.broken !== undefined) return;
    this.broken = this.rule(type, id, payload);
    if (this.broken !== undefined) for (const one of this.known.values()) if (!one.over) this.#gone(one, "lost");
    if (this.broken !== undefined || type === 7 || type === 8) return;
    if (type === 6) return void this.pings.push(payload.toString("hex"));
    if (type === 1 && !this.#isRouter) return this.#opens(id, payload);
    const one = this.known.get(id);
    if (one && !one.over) this.#takeFor(one, type, payload);
  }

  #opens(id: number, payload: Buffer): void {
    const one = this.opened(id);
    one.over = this.hasSaidGoAway;
    if (!one.over) this.tell("taken", id, payload.toString());
  }

  #takeFor(one: KnownStream, type: number, payload: Buffer): void {
    switch (type) {
      case 1:
        one.begun = true;
        return this.tell("head", one.id, payload.toString());
      case 2:
        one.peerCredit -= payload.length;
        one.kept += payload.length;
        return this.#deliver(one);
      case 3:
        one.ended = true;
        one.over = this.#isRouter;
        one.pending = payload[0]!;
        if (this.#isRouter) this.#done(one);
        return this.#deliver(one);
      case 4:
        return this.#gone(one, cancelWords[payload[0]!] ?? "internal");
      case 9:
        return this.#done(one);
      default:
        one.credit += payload.readUInt32BE();
    }
  }

  #done(one: KnownStream): void {
    if (!one.done) this.tell("done", one.id, "");
    one.done = true;
  }

  resume(one: KnownStream): void {
    one.paused = false;
    this.#deliver(one);
  }

  #deliver(one: KnownStream): void {
    if (one.paused) return;
    if (one.kept > 0) {
      this.tell("data", one.id, one.kept);
      one.taken += one.kept;
      one.kept = 0;
    }
    if (one.pending !== undefined) this.tell("end", one.id, one.pending);
    one.pending = undefined;
  }

  gone(one: KnownStream): void {
    one.over = true;
    one.kept = 0;
    one.pending = undefined;
  }

  #gone(one: KnownStream, why: string): void {
    this.gone(one);
    this.tell("gone", one.id, why);
  }
}
