/**
 * Finds the primary among the hosts of a database URL (`postgres://user@db1,db2:5433/weiche`). `pg` itself connects to any
 * host, and keeps connections to a primary that has become a standby. Here every new connection goes to the primary, and
 * connections to a former primary are closed.
 *
 *   primary ──a connection cannot be opened, or gets no answer──▶ searching ──a host accepts writes──▶ primary
 */
import { callbackify } from "node:util";
import { Client, type ClientConfig } from "pg";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { describeError } from "@weiche/shared/program/log.ts";
import { hostOf, hostUrls } from "../config/database-url.ts";
import { openClient, type ConnectionSettings } from "./client.ts";
import { destroySocket } from "./pool.ts";

export interface DatabaseHostsEvents {
  /** Another host, `host:port`, is the primary now. */
  databaseMoved(host: string): void;
}

const probeMsMax = 3_000;
/** The pause between searches while no host is a primary. */
const searchAgainMs = 500;
/** PostgreSQL's code of a write on a standby. */
const readOnly = "25006";

class NotPrimary extends Error {
  readonly code = readOnly;

  constructor() {
    super("the host is a standby, or read-only");
  }
}

export class DatabaseHosts implements AsyncDisposable {
  readonly #urls: readonly string[];
  readonly #events: DatabaseHostsEvents;
  readonly #searching: SingleFlight;
  /** Open connections, with the URL of their host. */
  readonly #open = new Map<Client, string>();
  #present: string;

  /** Finds the primary. Throws a `StartError` if no host is the primary. */
  static async find(url: string, clock: Clock, events: DatabaseHostsEvents): Promise<DatabaseHosts> {
    return new DatabaseHosts(await primaryOf(url), hostUrls(url), clock, events);
  }

  private constructor(present: string, urls: readonly string[], clock: Clock, events: DatabaseHostsEvents) {
    this.#present = present;
    this.#urls = urls;
    this.#events = events;
    this.#searching = new SingleFlight(clock, () => this.#search(), searchAgainMs);
  }

  /** Settings for pools and single connections. Each new connection goes to the current primary. */
  get connection(): ConnectionSettings {
    return { connectionString: this.#present, Client: this.#clientClass() };
  }

  /** Searches the primary again. Call it after a connection did not answer. */
  doubt(): void {
    if (this.#urls.length > 1) this.#searching.wish();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#searching[Symbol.asyncDispose]();
  }

  async #search(): Promise<void> {
    const found = await Promise.any(this.#urls.map(probe));
    if (found === this.#present) return;
    this.#present = found;
    this.#events.databaseMoved(hostOf(found));
    this.#closeAll((url) => url !== found);
  }

  #closeAll(where: (url: string) => boolean): void {
    for (const [client, url] of this.#open) if (where(url)) destroySocket(client);
  }

  #connecting(client: Client): void {
    const url = this.#present;
    this.#open.set(client, url);
    client.connection.once("end", () => this.#open.delete(client));
    client.connection.on("errorMessage", ({ code }: { readonly code?: string }) => {
      if (code === readOnly) this.#closeAll((its) => its === url);
    });
  }

  #clientClass(): typeof Client {
    const present = () => this.#present;
    const connecting = (client: Client) => this.#connecting(client);
    const doubt = () => this.doubt();
    return class PrimaryClient extends Client {
      constructor(config: ClientConfig) {
        super({ ...config, connectionString: present() });
        this.on("error", () => {}); // a pool adds its error listener after connecting; without this one, an earlier loss would end the process
        connecting(this);
      }

      override connect(): Promise<Client>;
      override connect(callback: (error: Error | null) => void): void;
      override connect(callback?: (error: Error | null) => void): Promise<Client> | void {
        if (!callback) return this.#connectToPrimary();
        callbackify(() => this.#connectToPrimary())(callback);
      }

      async #connectToPrimary(): Promise<Client> {
        try {
          await super.connect();
          await requirePrimary(this);
          return this;
        } catch (error) {
          destroySocket(this);
          doubt();
          throw error;
        }
      }
    } as typeof Client;
  }
}

/** Returns the URL of the primary. Throws a `StartError` if there is none. A single host is returned without a query. */
export async function primaryOf(url: string): Promise<string> {
  const urls = hostUrls(url);
  if (urls.length === 1) return urls[0]!;
  const found = await Promise.allSettled(urls.map(probe));
  const primary = found.find(({ status }) => status === "fulfilled");
  if (primary?.status === "fulfilled") return primary.value;
  const reasons = found.map((each, index) =>
    each.status === "rejected" ? `${hostOf(urls[index]!)}: ${describeError(each.reason).error}` : "",
  );
  throw new StartError(`no host of the database is its primary (${reasons.join("; ")})`);
}

async function probe(url: string): Promise<string> {
  const limits = { connectionTimeoutMillis: probeMsMax, query_timeout: probeMsMax };
  await using client = await openClient({ connectionString: url, ...limits, application_name: "weiche" });
  await requirePrimary(client);
  return url;
}

async function requirePrimary(client: Client): Promise<void> {
  const { rows } = await client.query<{ value: string }>("select current_setting('transaction_read_only') as value");
  if (rows[0]!.value === "on") throw new NotPrimary();
}
