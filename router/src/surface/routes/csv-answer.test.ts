import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { settle, VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { Route } from "../contract/route.ts";
import type { Call } from "../server/add-routes.ts";
import { sendCsv, unreadMsMax } from "./csv-answer.ts";
import { ExportPlace, paceMs } from "./export-places.ts";

/** More bytes than the system buffers for a client that does not read. */
const large = "x".repeat(64 << 20);

async function* linesOf(pieces: Iterable<string>, over: () => void) {
  try {
    yield* pieces;
  } finally {
    over();
  }
}

/** Starts an export of these pieces for a client that has not read anything yet. */
async function startExport(clock: VirtualClock, pieces: Iterable<string>) {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client: Socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.pause().on("error", () => {});
  client.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const [request, response] = (await once(server, "request")) as [IncomingMessage, ServerResponse];
  let isOver = false;
  const lines = linesOf(pieces, () => (isOver = true));
  const place = new ExportPlace(clock, () => {});
  const sent = sendCsv({ takeOver: () => ({ request, response }) }, clock, place, "x.csv", lines);
  return {
    client,
    place,
    response,
    sent,
    isOver: () => isOver,
    async [Symbol.asyncDispose]() {
      client.destroy();
      await sent;
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function* endless(piece = large) {
  for (;;) yield piece;
}

test.each<[string, Iterable<string>]>([
  ["in the middle", endless()],
  ["at the last piece", [large]],
])("a client that reads nothing for half a minute is cut off %s", async (_where, pieces) => {
  const clock = new VirtualClock();
  await using run = await startExport(clock, pieces);
  await expect.poll(() => run.response.writableNeedDrain && clock.pending).toBe(2);
  await clock.advanceAsync(unreadMsMax - 1);
  expect(run.response.destroyed).toBe(false);
  await clock.advanceAsync(1);
  expect(run.response.destroyed).toBe(true);
  await run.sent;
  expect([run.isOver(), clock.pending]).toEqual([true, 0]);
});

test.each([
  [300_000, false],
  [700_000, true],
])("a client that reads %d bytes every 20 s keeps its export: %s [D10]", async (bytes, goesOn) => {
  const clock = new VirtualClock();
  const response = new PassThrough({ highWaterMark: 1 });
  const taken = { response: Object.assign(response, { writeHead() {} }) } as unknown as ReturnType<
    Call<Route>["takeOver"]
  >;
  const place = new ExportPlace(clock, () => {});
  const lines = linesOf(endless("x".repeat(bytes)), () => {});
  const sent = sendCsv({ takeOver: () => taken }, clock, place, "x.csv", lines);
  for (let n = 0; n < 20 && !response.destroyed; n++) {
    await settle();
    response.read();
    await clock.advanceAsync(20_000);
  }
  expect(!response.destroyed).toBe(goesOn);
  response.destroy();
  await sent;
  expect(clock.pending).toBe(0);
});

test("a slow client is cut off when its place must give way, not earlier", async () => {
  const clock = new VirtualClock();
  await using run = await startExport(clock, endless());
  await expect.poll(() => run.response.writableNeedDrain && clock.pending).toBe(2);
  // The first piece fits into the buffers at once.
  await clock.advanceAsync(paceMs);
  expect(run.place.isSlow).toBe(false);
  await clock.advanceAsync(paceMs - 1);
  expect(run.place.isSlow).toBe(false);
  await clock.advanceAsync(1);
  expect([run.place.isSlow, run.response.destroyed]).toEqual([true, false]);
  run.place.giveWay();
  expect(run.response.destroyed).toBe(true);
  await run.sent;
});

test("a client that reads gets the whole export, however long each piece takes to make", async () => {
  const clock = new VirtualClock();
  function* slow() {
    for (let n = 0; n < 10; n++) {
      clock.advance(unreadMsMax + 1_000);
      yield `line ${n}\r\n`;
    }
  }
  await using run = await startExport(clock, slow());
  const texts = run.client.setEncoding("utf8").map(String);
  const text = (await texts.toArray()).join("");
  expect(text.match(/line \d/g)).toHaveLength(10);
  await run.sent;
  expect([run.isOver(), clock.pending]).toEqual([true, 0]);
});
