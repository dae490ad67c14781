/**
 * A TCP proxy that can fall silent in one or both directions: connections stay open but pass no bytes, as with a cut cable or
 * a firewall that has forgotten them. When the proxy ends its silence, it cuts connections that have lost bytes.
 */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** `up`: from the dialling end. `down`: to the dialling end. */
export type Direction = "up" | "down";

export interface TcpProxy extends Disposable {
  readonly port: number;
  /** The destination of new connections. */
  to(port: number): void;
  /** Stops forwarding in these directions, on old and new connections. */
  silence(...directions: readonly Direction[]): void;
  speak(): void;
}

interface Pair {
  readonly sockets: readonly [Socket, Socket];
  lost: boolean;
}

export async function openTcpProxy(toPort = 0, listen: { host?: string; port?: number } = {}): Promise<TcpProxy> {
  let target = toPort;
  let silent: ReadonlySet<Direction> = new Set();
  const pairs = new Set<Pair>();
  const server = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    const pair: Pair = { sockets: [near, far], lost: false };
    pairs.add(pair);
    for (const [from, to, direction] of [
      [near, far, "up"],
      [far, near, "down"],
    ] as const) {
      const pass = (forward: () => unknown) => {
        if (silent.has(direction)) pair.lost = true;
        else forward();
      };
      from.on("data", (chunk) => pass(() => to.write(chunk)));
      from.on("end", () => pass(() => to.end()));
      from.on("error", () => {});
      from.on("close", () => {
        pass(() => to.destroy());
        if (near.destroyed && far.destroyed) pairs.delete(pair);
      });
    }
  });
  const cut = ({ sockets }: Pair) => sockets.forEach((socket) => socket.destroy());
  server.listen({ host: "127.0.0.1", port: 0, ...listen });
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    to: (port) => (target = port),
    silence: (...directions) => (silent = new Set(directions.length > 0 ? directions : ["up", "down"])),
    speak: () => {
      silent = new Set();
      for (const pair of pairs) if (pair.lost) cut(pair);
    },
    [Symbol.dispose]: () => {
      server.close();
      for (const pair of pairs) cut(pair);
    },
  };
}
