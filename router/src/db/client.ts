/** Single connections to the database, outside the pools. */
import { Client, type ClientConfig } from "pg";

/** Settings of connections, for pools and single ones. */
export interface ConnectionSettings extends ClientConfig {
  /** The class that opens connections. Defaults to the class of the driver. */
  readonly Client?: typeof Client;
}

/** Opens a connection that ends with its scope (`await using`). Rejects if the server does not accept it. */
export async function openClient(connection: ConnectionSettings): Promise<Client & AsyncDisposable> {
  const client = clientOf(connection);
  client.on("error", () => {}); // the running statement rejects
  const end = () => client.end().catch(() => {});
  try {
    await client.connect();
  } catch (error) {
    await end();
    throw error;
  }
  return Object.assign(client, { [Symbol.asyncDispose]: end });
}

/** Makes a connection that is not open yet. */
export function clientOf(connection: ConnectionSettings): Client {
  return new (connection.Client ?? Client)(connection);
}
