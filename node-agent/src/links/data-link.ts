/**
 * The agent's ends of the data connections to one router. The agent dials, so that a GPU host opens no port. One session at first, another per 250 open streams, at most 8; a broken one is dialled again.
 */
import type { Rule } from "@weiche/shared/frames/frame.ts";
import type { Timer } from "@weiche/shared/time/clock.ts";
import { parseListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import { sessionsMax, streamsPerSession } from "@weiche/shared/node-protocol.ts";
import { Backoff } from "./backoff.ts";
import { dialDataSession, type DialledSession, type DialOptions } from "./data-session.ts";

export interface DataLinkEvents {
  dataSessionUp(routerId: string, sessions: number): void;
  dataSessionDown(routerId: string, sessions: number): void;
  /** The router did not accept the session. Emitted when the reason changes. */
  dataSessionFailed(routerId: string, reason: string): void;
  /** The router broke a rule of the wire: the session was closed. */
  dataSessionBroken(routerId: string, rule: Rule, reason: string): void;
}

interface DataLinkOptions extends Omit<DialOptions, "onStream" | "onBroken"> {
  readonly routerId: string;
  readonly random: () => number;
  /** Called with the number of open sessions when it changes. */
  readonly onSessions: (sessions: number) => void;
  readonly events: DataLinkEvents;
}

/** Sessions to a router, with those that take no more streams: their ends are the router's to close. */
const sessionsHeldMax = 2 * sessionsMax;

export class DataLink {
  readonly #options: DataLinkOptions;
  readonly #backoff: Backoff;
  /** Sessions that hold the present certificate. */
  #current = new Set<DialledSession>();
  /** Sessions of an earlier certificate, whose streams are left to end. */
  readonly #earlier = new Set<DialledSession>();
  readonly #ignoreTls: (() => void) | undefined;
  #address: ListenAddress | undefined;
  #isDialling = false;
  #redial: Timer | undefined;
  #failure = "";

  constructor(options: DataLinkOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.clock, options.random);
    this.#ignoreTls = options.tls?.onChange(() => this.#replaceAll());
  }

  /** Keeps sessions to `address` (host:port) from now on. */
  dial(address: string): void {
    try {
      this.#address = parseListen(address, "the router's data address");
    } catch (error) {
      return this.#failed((error as Error).message);
    }
    this.#fill();
  }

  /** Stops dialling; open sessions stay. */
  rest(): void {
    this.#address = undefined;
    this.#redial?.cancel();
    this.#redial = undefined;
  }

  get sessions(): number {
    return this.#current.size + this.#earlier.size;
  }

  get streams(): number {
    return [...this.#current, ...this.#earlier].reduce((sum, session) => sum + session.streams, 0);
  }

  /** Lets running streams end, and cuts what is left after `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    this.rest();
    this.#ignoreTls?.();
    const sessions = [...this.#current, ...this.#earlier];
    const deadline = this.#options.clock.after(deadlineMs, () => sessions.forEach((session) => session.destroy()));
    await Promise.all(sessions.map((session) => session.close()));
    deadline.cancel();
  }

  /** Dials one more session if there are too few; when it is up, looks again. */
  #fill(): void {
    if (!this.#address || this.#isDialling || this.#redial || this.#openSessions() >= this.#wanted()) return;
    if (this.sessions >= sessionsHeldMax) return; // until the router closes one
    this.#isDialling = true;
    void this.#dialOne(this.#address).then((isUp) => {
      this.#isDialling = false;
      if (isUp) this.#fill();
      else this.#fillLater();
    });
  }

  #fillLater(): void {
    if (!this.#address) return;
    this.#redial ??= this.#options.clock.after(this.#backoff.nextMs(), () => {
      this.#redial = undefined;
      this.#fill();
    });
  }

  async #dialOne(address: ListenAddress): Promise<boolean> {
    const { routerId, events } = this.#options;
    const group = this.#current;
    try {
      const session = await dialDataSession(address, {
        ...this.#options,
        onStream: () => this.#fill(),
        onBroken: (rule, reason) => events.dataSessionBroken(routerId, rule, reason),
      });
      if (address !== this.#address || group !== this.#current) {
        session.destroy(); // no longer wanted, or dialled with the certificate of before
        return true;
      }
      group.add(session);
      this.#failure = "";
      this.#options.onSessions(this.sessions);
      events.dataSessionUp(routerId, this.sessions);
      this.#backoff.up();
      void session.closed.then(() => this.#lost(session));
      for (const earlier of this.#earlier) void earlier.close();
      return true;
    } catch (error) {
      this.#failed((error as Error).message);
      return false;
    }
  }

  #failed(reason: string): void {
    if (reason !== this.#failure) this.#options.events.dataSessionFailed(this.#options.routerId, reason);
    this.#failure = reason;
  }

  #lost(session: DialledSession): void {
    this.#current.delete(session);
    this.#earlier.delete(session);
    const { routerId, events, onSessions } = this.#options;
    onSessions(this.sessions);
    events.dataSessionDown(routerId, this.sessions);
    this.#fillLater();
  }

  /** Replaces sessions of the old certificate as soon as one with the new certificate is up. */
  #replaceAll(): void {
    for (const session of this.#current) this.#earlier.add(session);
    this.#current = new Set();
    this.#fill();
  }

  #openSessions(): number {
    return [...this.#current].filter((session) => session.open).length;
  }

  #wanted(): number {
    return Math.min(sessionsMax, 1 + Math.floor(this.streams / streamsPerSession));
  }
}
