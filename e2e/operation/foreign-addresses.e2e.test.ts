/** Tests that router, agent and embedded engine never fetch an address that a client names. */
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { openCluster, sendAll } from "./foreign-addresses.ts";

test("no part fetches an address that a request names in any field [D8]", async () => {
  let calls = 0;
  const foreign = createServer((socket) => {
    calls++;
    socket.destroy();
  }).listen(0, "127.0.0.1");
  await once(foreign, "listening");
  await using cluster = await openCluster();
  const { port } = foreign.address() as AddressInfo;
  const { apiKey } = await cluster.account();
  const statuses = await sendAll(cluster, apiKey, `http://127.0.0.1:${port}/x.json`);
  expect(statuses).toMatchObject({
    "a text": 200,
    "an image by its URL": 400,
    "an image by a file URL": 400,
    "a data URI that ends in the URL": 400,
    "a reference in a schema": 400,
    "a reference in a tool": 400,
  });
  expect(Object.values(statuses).filter((status) => status !== 200 && status !== 400)).toEqual([]);
  expect(calls).toBe(0);
  await fetch(`http://127.0.0.1:${port}/`).catch(() => {});
  expect(calls, "the counting server runs").toBe(1);
  foreign.close();
});
