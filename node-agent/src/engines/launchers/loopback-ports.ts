/** Hands out free loopback ports for engines. A port stays taken until released, even before its engine listens. */
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";

export interface LoopbackPorts {
  take(): Promise<number>;
  /** Call when the engine that had the port is gone. */
  release(port: number): void;
}

export function createLoopbackPorts(): LoopbackPorts {
  const taken = new Set<number>();
  return {
    async take() {
      for (;;) {
        const port = await freePort();
        if (taken.has(port)) continue;
        taken.add(port);
        return port;
      }
    },
    release: (port) => void taken.delete(port),
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
