/**
 * The agent's data connections to one router. The agent dials, so that a GPU host opens no port. It opens one
 * connection first, and one more for each 250 open streams, up to 8. It replaces a broken connection.
 */
import type { Rule } from "@weiche/shared/frames/frame.ts";
import type { Timer } from "@weiche/shared/time/clock.ts";
import { parseListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import { connectionsMax, streamsPerConnection } from "@weiche/shared/node-protocol.ts";
import { Backoff } from "./backoff.ts";
import { dialDataConnection, type DialledConnection, type DialOptions } from "./data-connection.ts";

export interface DataLinkEvents {
  dataConnectionUp(routerId: string, connections: number): void;
  dataConnectionDown(routerId: string, connections: number): void;
  /** The router did not accept the data connection. Emitted when the reason changes. */
  dataConnectionFailed(routerId: string, reason: string): void;
  /** The router broke a rule of the protocol, and the data connection was closed. */
  dataConnectionBroken(routerId: string, rule: Rule, reason: string): void;
}

interface DataLinkOptions extends Omit<DialOptions, "onStream" | "onBroken"> {
  readonly routerId: string;
  readonly random: () => number;
  /** Called with the number of open data connections when it changes. */
  readonly onConnections: (connections: number) => void;
  readonly events: DataLinkEvents;
}

/**
 * The limit of data connections to a router, including connections that take no more streams, which the router closes.
 */
const connectionsHeldMax = 2 * connectionsMax;

export class DataLink {
  readonly #options: DataLinkOptions;
  readonly #backoff: Backoff;
  /** Data connections with the present certificate. */
  #current = new Set<DialledConnection>();
  /** Data connections with an earlier certificate, kept until their streams end. */
  readonly #earlier = new Set<DialledConnection>();
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

  /** Keeps data connections to `address` (host:port) from now on. */
  dial(address: string): void {
    try {
      this.#address = parseListen(address, "the router's data address");
    } catch (error) {
      return this.#failed((error as Error).message);
    }
    this.#fill();
  }

  /** Stops dialling. Open data connections stay. */
  rest(): void {
    this.#address = undefined;
    this.#redial?.cancel();
    this.#redial = undefined;
  }

  get connections(): number {
    return this.#current.size + this.#earlier.size;
  }

  get streams(): number {
    return [...this.#current, ...this.#earlier].reduce((sum, connection) => sum + connection.streams, 0);
  }

  /** Lets running streams end, and cuts the rest after `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    this.rest();
    this.#ignoreTls?.();
    const connections = [...this.#current, ...this.#earlier];
    const deadline = this.#options.clock.after(deadlineMs, () =>
      connections.forEach((connection) => connection.destroy()),
    );
    await Promise.all(connections.map((connection) => connection.close()));
    deadline.cancel();
  }

  /** Dials one more data connection if there are too few, and checks again when it is up. */
  #fill(): void {
    if (!this.#address || this.#isDialling || this.#redial || this.#openConnections() >= this.#wanted()) return;
    if (this.connections >= connectionsHeldMax) return; // Wait until the router closes one.
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
      const connection = await dialDataConnection(address, {
        ...this.#options,
        onStream: () => this.#fill(),
        onBroken: (rule, reason) => events.dataConnectionBroken(routerId, rule, reason),
      });
      if (address !== this.#address || group !== this.#current) {
        connection.destroy(); // It is no longer needed, or was dialled with the old certificate.
        return true;
      }
      group.add(connection);
      this.#failure = "";
      this.#options.onConnections(this.connections);
      events.dataConnectionUp(routerId, this.connections);
      this.#backoff.up();
      void connection.closed.then(() => this.#lost(connection));
      for (const earlier of this.#earlier) void earlier.close();
      return true;
    } catch (error) {
      this.#failed((error as Error).message);
      return false;
    }
  }

  #failed(reason: string): void {
    if (reason !== this.#failure) this.#options.events.dataConnectionFailed(this.#options.routerId, reason);
    this.#failure = reason;
  }

  #lost(connection: DialledConnection): void {
    this.#current.delete(connection);
    this.#earlier.delete(connection);
    const { routerId, events, onConnections } = this.#options;
    onConnections(this.connections);
    events.dataConnectionDown(routerId, this.connections);
    this.#fillLater();
  }

  /** Replaces data connections of the old certificate as soon as one with the new certificate is up. */
  #replaceAll(): void {
    for (const connection of this.#current) this.#earlier.add(connection);
    this.#current = new Set();
    this.#fill();
  }

  #openConnections(): number {
    return [...this.#current].filter((connection) => connection.open).length;
  }

  #wanted(): number {
    return Math.min(connectionsMax, 1 + Math.floor(this.streams / streamsPerConnection));
  }
}
