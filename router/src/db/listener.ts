/** Listens for notifications on a separate connection and reconnects when it breaks. Notifications may be lost. */
import type { Client } from "pg";
import { every, type Clock } from "@weiche/shared/time/clock.ts";
import { clientOf, type ConnectionSettings } from "./client.ts";

const reconnectMs = 1_000;
const connectMsMax = 5_000;

/**
 * Calls `heard` for each notification. Also calls it after each connect, because notifications may have been missed.
 * Resolves after the first attempt to connect, successful or not.
 */
export async function listen(
  connection: ConnectionSettings,
  channel: string,
  clock: Clock,
  heard: () => void,
): Promise<AsyncDisposable> {
  let client: Client | undefined;
  let connecting = connect();
  const retry = every(clock, reconnectMs, () => {
    if (!client) return (connecting = connect());
  });

  async function connect(): Promise<void> {
    const candidate = clientOf({ ...connection, keepAlive: true, connectionTimeoutMillis: connectMsMax });
    const lost = () => {
      if (client === candidate) client = undefined;
    };
    candidate.on("error", lost);
    candidate.on("end", lost);
    candidate.on("notification", heard);
    try {
      await candidate.connect();
      await candidate.query(`listen ${channel}`);
      client = candidate;
      heard();
    } catch {
      await candidate.end().catch(() => {});
    }
  }

  await connecting;
  return {
    async [Symbol.asyncDispose]() {
      retry.cancel();
      await connecting;
      void client?.end().catch(() => {}); // not awaited, because a dead server does not answer
    },
  };
}
