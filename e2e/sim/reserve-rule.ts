/**
 * Checks the reserve: places that only accounts without a place may take, while such an account has sent requests
 * recently. Its numbers are repeated here, so that a change of the product's numbers is noticed.
 */
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import type { SimRequest } from "./sim-request.ts";

const rememberedMs = 3_600_000;

function reserveOf(places: number): number {
  return places < 5 ? 0 : Math.max(1, Math.floor(places / 8));
}

interface Engine {
  readonly places: number;
  readonly nowMs: number;
  readonly running: ReadonlySet<SimRequest>;
  readonly waiting: ReadonlySet<SimRequest>;
  readonly needs: (request: SimRequest) => number;
}

type LastAsked = Map<ModelId, Map<AccountId, number>>;

export class ReserveRule {
  /** A refused request may be remembered or not. */
  readonly #perhaps: LastAsked = new Map();
  readonly #surely: LastAsked = new Map();

  asked(request: SimRequest): void {
    note(this.#perhaps, request);
  }

  admitted(request: SimRequest): void {
    note(this.#surely, request);
  }

  /** Returns whether a request that was just admitted took a place of the reserve that was not for its account. */
  isTaken(request: SimRequest, engine: Engine): boolean {
    const others = [...engine.running].filter((other) => other.model === request.model && other !== request);
    const holds = others.some(({ account }) => account === request.account);
    const taken = [...others, request].reduce((sum, other) => sum + engine.needs(other), 0);
    const isIntoReserve = taken > engine.places - reserveOf(engine.places);
    return holds && isIntoReserve && this.#mayCome(this.#surely, request, engine, "idle");
  }

  /** Returns whether a request that would fit may wait because of the reserve. */
  mayKeep(request: SimRequest, free: number, engine: Engine): boolean {
    const reserve = reserveOf(engine.places);
    const isInReserve = engine.needs(request) > free - reserve;
    return isInReserve && reserve > 0 && this.#mayCome(this.#perhaps, request, engine, "idle or waiting");
  }

  #mayCome(last: LastAsked, { model, account }: SimRequest, engine: Engine, who: "idle" | "idle or waiting"): boolean {
    const busy = [...engine.running, ...(who === "idle" ? engine.waiting : [])];
    const others = [...(last.get(model) ?? [])].filter(
      ([other, atMs]) =>
        other !== account &&
        atMs > engine.nowMs - rememberedMs &&
        !busy.some((request) => request.model === model && request.account === other),
    );
    return others.length > 0;
  }
}

function note(last: LastAsked, { model, account, sinceMs }: SimRequest): void {
  const accounts = last.get(model) ?? new Map<AccountId, number>();
  last.set(model, accounts.set(account, Math.max(sinceMs, accounts.get(account) ?? 0)));
}
