/**
 * Listens for connections with several sockets on one port. The event loop accepts one connection of each socket in a turn
 * (libuv since 1.45), and a busy loop has few turns: behind three thousand connections of an attacker, others waited for
 * 36 s until they were accepted. Linux spreads connections over the sockets by their addresses and ports.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { StartError } from "../files/start-error.ts";
import { formatListen, type ListenAddress } from "../http/listen.ts";

export interface Listening {
  /** The actual port. */
  readonly port: number;
  /**
   * Accepts nothing more. Call it together with `close` of the server. Alone, `close` does not wait for all
   * connections.
   */
  stop(): void;
}

/** The number of sockets of a port. Only Linux spreads connections over several. */
const socketsEach = process.platform === "linux" ? 32 : 1;
/**
 * Connections that the kernel holds for a socket until they are accepted. Further clients try again after 1, 3, 7, 15
 * and 31 s. Each connection that the kernel holds waits one turn for every connection before it.
 */
const unacceptedMax = 256;

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EACCES: "this user may not use the port (EACCES; docs/runbook.md#a-port-below-1024)",
  EADDRNOTAVAIL: "this machine has no such address (EADDRNOTAVAIL)",
};

/** Throws `StartError`, which names the setting. */
export async function listenOn(server: Server, listen: ListenAddress): Promise<Listening> {
  const { host, setting } = listen;
  try {
    await requireFree(listen);
    const port = await bind(server, host, listen.port);
    const more = Array.from({ length: socketsEach - 1 }, () => acceptFor(server));
    const stop = () => more.forEach((each) => each.close());
    await Promise.all(more.map((each) => bind(each, host, port)));
    return { port, stop };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = (code && reasons[code]) ?? code ?? "unknown error";
    const of = setting === undefined ? "" : ` (${setting})`;
    throw new StartError(`cannot listen on ${formatListen(listen)}${of}: ${why}`);
  }
}

/** Checks that no other program listens, because sockets of the same user may share a port: two routers would answer there. */
async function requireFree({ host, port }: ListenAddress): Promise<void> {
  if (port === 0 || socketsEach === 1) return;
  const probe = createServer().listen(port, host);
  await once(probe, "listening");
  await new Promise((resolve) => probe.close(resolve));
}

async function bind(server: Server, host: string, port: number): Promise<number> {
  server.listen({ host, port, backlog: unacceptedMax, reusePort: socketsEach > 1 });
  await once(server, "listening");
  return (server.address() as { port: number }).port;
}

/** The options of a server that Node.js uses for accepted sockets. */
type SocketOptions = Readonly<
  Record<"allowHalfOpen" | "noDelay" | "keepAlive" | "keepAliveInitialDelay" | "pauseOnConnect", unknown>
>;

function acceptFor(server: Server): Server {
  const { allowHalfOpen, noDelay, keepAlive, keepAliveInitialDelay, pauseOnConnect } = server as Server & SocketOptions;
  const options = { allowHalfOpen, noDelay, keepAlive, keepAliveInitialDelay, pauseOnConnect } satisfies SocketOptions;
  return Object.assign(
    createServer((socket) => server.emit("connection", socket)),
    options,
  );
}
