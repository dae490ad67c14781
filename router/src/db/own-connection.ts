/** A connection apart from the pool, for what must not wait: neither behind others nor for a server that is gone. */
import { Client, type ClientConfig, type QueryConfig, type QueryResult, type QueryResultRow } from "pg";
import { typesOfOurs } from "./database.ts";

export class OwnConnection implements Disposable {
  readonly #config: ClientConfig;
  readonly #lost: () => void;
  #client: Client | undefined;

  /** `msMax`: for connecting, and for each statement. `lost`: a connection that was there gave no answer. */
  constructor(connection: ClientConfig, msMax: number, lost: () => void = () => {}) {
    this.#lost = lost;
    const times = { connectionTimeoutMillis: msMax, statement_timeout: msMax, query_timeout: msMax };
    this.#config = { ...connection, ...times, keepAlive: true, types: typesOfOurs };
  }

  /** One at a time. Run again on a new connection if one that was there already has failed: it may be lost without a word. */
  async query<Row extends QueryResultRow>(query: QueryConfig): Promise<QueryResult<Row>> {
    const wasOpen = this.#client !== undefined;
    try {
      return await this.#attempt<Row>(query);
    } catch (error) {
      if (!wasOpen) throw error;
      this.#lost();
      return await this.#attempt<Row>(query);
    }
  }

  async #attempt<Row extends QueryResultRow>(query: QueryConfig): Promise<QueryResult<Row>> {
    try {
      this.#client ??= await this.#connect();
      return await this.#client.query<Row>(query);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  async #connect(): Promise<Client> {
    const client = new Client(this.#config);
    client.on("error", () => {}); // the next statement fails, too
    try {
      await client.connect();
      return client;
    } catch (error) {
      void client.end().catch(() => {});
      throw error;
    }
  }

  /** Waits for nothing: a server that is gone would not say goodbye. */
  [Symbol.dispose](): void {
    void this.#client?.end().catch(() => {});
    this.#client = undefined;
  }
}
