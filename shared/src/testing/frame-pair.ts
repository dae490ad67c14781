/** Makes both ends of data connections over real sockets. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { FrameConnection } from "../frames/frame-connection.ts";
import type { Clock } from "../time/clock.ts";
import { systemClock } from "../time/clock.ts";
import { SimStream } from "./sim-stream.ts";

interface FramePair extends AsyncDisposable {
  readonly router: FrameConnection;
  readonly agent: FrameConnection;
  /** The router's end and the agent's end. */
  readonly sockets: readonly [Socket, Socket];
  /** Why each end closed. */
  readonly closed: { router?: string; agent?: string };
}

/** Opens a pair. `take` answers the streams that the router opens. */
export async function openFramePair(
  take: (stream: SimStream, record: string) => void,
  clock: Clock = systemClock,
): Promise<FramePair> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const dialled = connect((listener.address() as AddressInfo).port, "127.0.0.1");
  const [accepted] = (await once(listener, "connection")) as [Socket];
  listener.close();
  const closed: FramePair["closed"] = {};
  const router = new FrameConnection(accepted, { clock, closed: (reason) => (closed.router = reason) });
  const agent = new FrameConnection(dialled, {
    clock,
    take: (frames, record) => {
      const stream = SimStream.taken(frames);
      take(stream, record);
      return stream;
    },
    closed: (reason) => (closed.agent = reason),
  });
  return {
    ...{ router, agent, sockets: [accepted, dialled], closed },
    async [Symbol.asyncDispose]() {
      for (const socket of [accepted, dialled]) {
        socket.destroy();
        if (!socket.closed) await once(socket, "close");
      }
    },
  };
}
