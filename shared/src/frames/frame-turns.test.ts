/** Tests how much of a connection is read in one turn of the event loop. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { rawFrame } from "../testing/raw-frames.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { FrameConnection } from "./frame-connection.ts";

/**
 * Sends a router this many bytes of frames for a stream that is over. Resolves with the largest number of reads in one
 * turn.
 */
async function readsPerTurn(frame: Buffer, bytesMin: number): Promise<number> {
  const frames = Buffer.concat(Array.from({ length: Math.ceil(bytesMin / frame.length) }, () => frame));
  let reads = 0;
  let bytes = 0;
  const server = createServer((socket) => {
    const connection = new FrameConnection(socket, { clock: new VirtualClock(), closed() {} });
    connection.open("[]", { head() {}, data() {}, end() {}, gone() {}, drain() {} })!.cancel("unwanted");
    socket.on("data", (received: Buffer) => {
      reads++;
      bytes += received.length;
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const peer = connect((server.address() as AddressInfo).port, "127.0.0.1").resume();
  peer.write(frames);
  let most = 0;
  while (bytes < frames.length) {
    const before = reads;
    await turn();
    most = Math.max(most, reads - before);
  }
  peer.destroy();
  await new Promise((resolve) => server.close(resolve));
  return most;
}

test("a connection with short frames is read at most once per turn of the event loop [D10]", async () => {
  expect(await readsPerTurn(rawFrame(2, 1, "x"), 4 << 20)).toBe(1);
});

test("long frames are read as fast as they arrive", async () => {
  expect(await readsPerTurn(rawFrame(2, 1, Buffer.alloc(60_000)), 16 << 20)).toBeGreaterThan(1);
});
