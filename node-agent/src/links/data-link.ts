/**
 * The agent's ends of the data connections to one router: it dials, and is the HTTP/2 server on what it dialled, so that
 * a GPU host opens no port. One session at first, another per 250 open streams, at most 8; what breaks is dialled again.
 */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { parseListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import { sessionsMax, streamsPerSession, type NodeIdentity } from "@weiche/shared/node-protocol.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import { Backoff } from "./backoff.ts";
import { dialDataSession, type DialledSession, type StreamHandler } from "./data-session.ts";

export interface DataLinkEvents {
  dataSessionUp(routerId: string, sessions: number): void;
  dataSessionDown(routerId: string, sessions: number): void;
  /** Dialled, but the router did not take it. Told when the reason is another than the time before. */
  dataSessionFailed(routerId: string, reason: string): void;
}

export interface DataLinkOptions {
  readonly routerId: string;
  /** Absent: plain TCP, to loopback. */
  readonly tls?: TlsFiles;
  readonly clock: Clock;
  readonly random: () => number;
  readonly identity: NodeIdentity;
  readonly handle: StreamHandler;
  /** Hears how many sessions are up whenever that changes. */
  readonly onSessions: (sessions: number) => void;
  readonly events: DataLinkEvents;
}

export class DataLink {
  readonly #options: DataLinkOptions;
  readonly #backoff: Backoff;
  /** Sessions that hold the present certificate. */
  #current = new Set<DialledSession>();
  /** Sessions of an earlier certificate: what runs on them ends there. */
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

  /** Dials no more; the sessions that are open stay as long as they last. */
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

  /** Takes no more streams, lets those that run end, and cuts what is left after `deadlineMs`. */
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

  /** Whether it came up. */
  async #dialOne(address: ListenAddress): Promise<boolean> {
    const { routerId, events } = this.#options;
    const group = this.#current;
    try {
      const session = await dialDataSession(address, { ...this.#options, onStreams: () => this.#fill() });
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

  /** The certificate has changed: sessions with the old one end as soon as one with the new one is up. */
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
