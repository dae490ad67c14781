import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";

export type LoopbackPorts = ReturnType<typeof createLoopbackPorts>;

/** Hands out free loopback ports for engines. A port stays taken until released, even before its engine listens. */
export function createLoopbackPorts() {
  const taken = new Set<number>();
  return {
    async take(): Promise<number> {
      for (;;) {
        const port = await freePort();
        if (taken.has(port)) continue;
        taken.add(port);
        return port;
      }
    },
    /** Call when the engine that had the port is gone. */
    release: (port: number) => void taken.delete(port),
  };
}

/** Returns a port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
