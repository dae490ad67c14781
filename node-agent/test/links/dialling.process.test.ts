/** How long an agent waits for a busy router that has accepted its data connection. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { expect, test } from "vitest";
import { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { rawFrames } from "@weiche/shared/testing/raw-frames.ts";
import { frames } from "@weiche/shared/frames/frame.ts";
import { identityPath } from "@weiche/shared/node-protocol.ts";
import { dialDataConnection } from "../../src/links/data-connection.ts";

/**
 * Dials a router that answers PINGs, and nothing else until the test asks it. Virtual seconds pass for the agent alone.
 */
async function dial() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const clock = new VirtualClock();
  let result = "";
  const dialled = dialDataConnection(
    { host: "127.0.0.1", port },
    {
      clock,
      identity: { node: asId<NodeId>("n"), bootId: "b" },
      handle: (stream) => SimStream.taken(stream),
      onStream: () => {},
      onBroken: () => {},
    },
  );
  dialled.then(
    () => (result = "taken"),
    (error: Error) => (result = error.message),
  );
  const [socket] = (await once(listener, "connection")) as [Socket];
  listener.close();
  const received: Buffer[] = [];
  socket.on("data", (bytes: Buffer) => received.push(bytes));
  const types = () => rawFrames(Buffer.concat(received)).map(({ type }) => type);
  const router = new FrameConnection(socket, { clock: new VirtualClock(), closed: () => {} });
  await expect.poll(() => new Set(types())).toEqual(new Set([frames.ping, frames.pong]));
  return {
    router,
    types,
    result: () => result,
    dialled,
    /** Passes seconds, in each of which the router answers a PING. */
    async pass(seconds: number) {
      for (let second = 0; second < seconds; second++) {
        const before = types().length;
        await clock.advanceAsync(1_000);
        await expect.poll(() => types().length + Number(result !== "")).toBeGreaterThan(before);
      }
    },
    [Symbol.dispose]: () => socket.destroy(),
  };
}

test("a router that asks for the agent's identity nine seconds after the dial is served", async () => {
  using end = await dial();
  await end.pass(9);
  expect(end.result()).toBe("");
  SimStream.open(end.router, [identityPath]);
  await expect.poll(end.result).toBe("taken");
  (await end.dialled).destroy();
});

test("a router that has not asked for the agent's identity after ten seconds is abandoned", async () => {
  using end = await dial();
  await end.pass(10);
  await expect.poll(end.result).toBe("no answer within 10000 ms");
  expect(end.types().filter((type) => type !== frames.ping && type !== frames.pong)).toEqual([]);
});
