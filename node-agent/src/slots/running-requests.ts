/**
 * The requests on a slot's engine as a value: `with` and `without` return another one and leave this one as it is. The
 * newest value holds the map; an older one knows what it lacks or has besides, and takes the map back if it is asked again.
 * Nobody asks an old one but a test, so that a request costs the same however many run: copies of the map were most of
 * what a JSON request took beside 6,000 streams.
 */
import type { Running, Ticket } from "./slot-state.ts";

export class RunningRequests {
  readonly size: number;
  /** All that they hold together. */
  readonly places: number;
  #requests: Map<Ticket, Running> | undefined;
  /** In place of the map: who is nearer to it, and what that one has otherwise. */
  #step:
    | { readonly nearer: RunningRequests; readonly ticket: Ticket; readonly request: Running | undefined }
    | undefined;

  private constructor(requests: Map<Ticket, Running>, places: number) {
    this.#requests = requests;
    this.size = requests.size;
    this.places = places;
  }

  /** Nothing runs. Each slot needs one of its own, which is the beginning of its values. */
  static none(): RunningRequests {
    return new RunningRequests(new Map(), 0);
  }

  has(ticket: Ticket): boolean {
    return this.#hold().has(ticket);
  }

  get(ticket: Ticket): Running | undefined {
    return this.#hold().get(ticket);
  }

  tickets(): Iterable<Ticket> {
    return this.#hold().keys();
  }

  values(): Iterable<Running> {
    return this.#hold().values();
  }

  with(ticket: Ticket, request: Running): RunningRequests {
    return this.#next(ticket, request);
  }

  /** This one itself if there is no such request. */
  without(ticket: Ticket): RunningRequests {
    return this.has(ticket) ? this.#next(ticket, undefined) : this;
  }

  #next(ticket: Ticket, request: Running | undefined): RunningRequests {
    const requests = this.#hold();
    const before = requests.get(ticket);
    put(requests, ticket, request);
    const places = this.places + (request?.places ?? 0) - (before?.places ?? 0);
    const next = new RunningRequests(requests, places);
    this.#pass(next, ticket, before);
    return next;
  }

  /** Gives the map away, and keeps what it must be told to be this one's again. */
  #pass(nearer: RunningRequests, ticket: Ticket, request: Running | undefined): void {
    this.#requests = undefined;
    this.#step = { nearer, ticket, request };
  }

  /** The map, as it is for this value. */
  #hold(): Map<Ticket, Running> {
    if (this.#requests) return this.#requests;
    const way: RunningRequests[] = [];
    for (let step = this.#step; step; step = step.nearer.#step) way.push(step.nearer);
    let holder = way.pop()!;
    const requests = holder.#requests!;
    for (const older of [...way.toReversed(), this]) {
      const { ticket, request } = older.#step!;
      holder.#pass(older, ticket, requests.get(ticket));
      put(requests, ticket, request);
      older.#requests = requests;
      older.#step = undefined;
      holder = older;
    }
    return requests;
  }
}

function put(requests: Map<Ticket, Running>, ticket: Ticket, request: Running | undefined): void {
  if (request) requests.set(ticket, request);
  else requests.delete(ticket);
}
