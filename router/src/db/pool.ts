/** Opens pools of database connections and converts values to our types. */
import { Pool, types, type Client, type CustomTypesConfig, type PoolClient, type PoolConfig } from "pg";
import { within, type Clock } from "@weiche/shared/time/clock.ts";

/** `onIdleLost` is called when an idle connection is lost, unless the pool is closing. */
export function openPool(settings: PoolConfig, onIdleLost: (error: Error) => void): Pool {
  const pool = new Pool({ types: typesOfOurs, ...settings });
  // A stopping server may end a connection before it has read the pool's close message.
  pool.on("error", (error) => pool.ending || onIdleLost(error));
  // The pool has no error listener on a connection in use, so its loss would end the process. The statement rejects.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/** int8 becomes bigint, timestamptz Temporal.Instant, and date text. The driver converts the rest. */
const typesOfOurs: CustomTypesConfig = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    if (format !== "binary") {
      if (oid === types.builtins.INT8) return BigInt;
      if (oid === types.builtins.TIMESTAMPTZ) return (text: string) => Temporal.Instant.from(text);
      if (oid === types.builtins.DATE) return (text: string) => text;
    }
    return types.getTypeParser(oid, format) as (text: string) => unknown;
  },
};

/** Connections of a pool, and the number of statements that wait for one. */
export interface PoolUse {
  readonly used: number;
  readonly idle: number;
  readonly max: number;
  readonly waiting: number;
}

export function useOf({ totalCount, idleCount, waitingCount, options }: Pool): PoolUse {
  return { used: totalCount - idleCount, idle: idleCount, max: options.max, waiting: waitingCount };
}

const closeMsMax = 5_000;

/** `close` waits at most 5 s for connections in use, because a hanging server never releases them. `abandon` destroys them. */
export function endOf(pool: Pool, clock: Clock): { close(): Promise<void>; abandon(): void } {
  const connected = new Set<PoolClient>();
  pool.on("connect", (client) => connected.add(client)).on("remove", (client) => connected.delete(client));
  return {
    close: async () => (pool.ending ? undefined : within(clock, closeMsMax, pool.end())),
    abandon() {
      if (!pool.ending) void pool.end();
      for (const client of connected) destroySocket(client);
    },
  };
}

/**
 * Closes idle connections, so that the next statement opens a new one. Destroys their sockets, because the pool would wait
 * for the server's reply before it frees their places.
 */
export async function renewIdle(pool: Pool): Promise<void> {
  const closing = Array.from({ length: pool.idleCount }, async () => {
    const client = await pool.connect();
    destroySocket(client);
    client.release(true);
  });
  await Promise.allSettled(closing);
}

export function destroySocket({ connection }: Client): void {
  connection.stream.destroy();
}
