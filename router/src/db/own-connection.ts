/** A connection outside the pools, for statements that must wait neither behind others nor long for a dead server. */
import { Client, type ClientConfig, type QueryConfig, type QueryResult, type QueryResultRow } from "pg";
import { typesOfOurs } from "./database.ts";

export class OwnConnection implements Disposable {
  readonly #config: ClientConfig;
  readonly #lost: () => void;
  #client: Client | undefined;

  /** `msMax`: timeout of connecting and of each statement. `lost`: called when an open connection failed. */
  constructor(connection: ClientConfig, msMax: number, lost: () => void = () => {}) {
    this.#lost = lost;
    const times = { connectionTimeoutMillis: msMax, statement_timeout: msMax, query_timeout: msMax };
    this.#config = { ...connection, ...times, keepAlive: true, types: typesOfOurs };
  }

  /** Call one at a time. A query that fails on an open connection, maybe a dead one, is repeated on a new one. */
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
    client.on("error", () => {}); // the next statement reports it
    try {
      await client.connect();
      return client;
    } catch (error) {
      void client.end().catch(() => {});
      throw error;
    }
  }

  /** Does not wait: a dead server does not answer. */
  [Symbol.dispose](): void {
    void this.#client?.end().catch(() => {});
    this.#client = undefined;
  }
}
