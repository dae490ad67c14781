/** A TCP proxy that can fall silent: connections stay open and nothing gets through, as with a cable that was cut. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface TcpProxy extends Disposable {
  readonly port: number;
  /** Where new connections go. */
  to(port: number): void;
  /** Forwards nothing any more, in either direction, on connections of before and of now. */
  silence(): void;
  speak(): void;
}

export async function openTcpProxy(toPort = 0): Promise<TcpProxy> {
  let target = toPort;
  const sockets = new Set<Socket>();
  let silent = false;
  const server = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (chunk) => silent || to.write(chunk));
      from.on("end", () => silent || to.end());
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        if (!silent) to.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    to: (port) => (target = port),
    silence: () => (silent = true),
    speak: () => (silent = false),
    [Symbol.dispose]: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
