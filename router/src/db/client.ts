/** One connection to the database, outside the pools. */
import { Client, type ClientConfig } from "pg";

/** How connections are opened: for pools and single ones. */
export interface ConnectionSettings extends ClientConfig {
  /** Opens each connection; absent: as the driver does. */
  readonly Client?: typeof Client;
}

/** Opens a connection, which ends with its scope: `await using`. Rejects if the server does not take it. */
export async function openClient(connection: ConnectionSettings): Promise<Client & AsyncDisposable> {
  const client = clientOf(connection);
  client.on("error", () => {}); // the statement that runs rejects
  const end = () => client.end().catch(() => {});
  try {
    await client.connect();
  } catch (error) {
    await end();
    throw error;
  }
  return Object.assign(client, { [Symbol.asyncDispose]: end });
}

/** A connection that is not open yet. */
export function clientOf(connection: ConnectionSettings): Client {
  return new (connection.Client ?? Client)(connection);
}
