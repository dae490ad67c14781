/** Pipelining: HTTP/1.1 allows several requests in a row on a connection. It must not delay other clients. */
import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openOpsServer } from "@weiche/shared/program/ops-server.ts";
import { startApi } from "../api/api-harness.ts";
import { certificate } from "../nodes/certificate.ts";
import { startListener } from "./listener-rig.ts";
import { pagesPerRequest } from "../../src/surface/server/web-server.ts";
import { RawClient, until } from "./raw-client.ts";
import { temporaryFolder } from "../db/database-fixture.ts";

const { path: folder } = await forThisFile(temporaryFolder());
const tls = { current: certificate(folder, "listener"), onChange: () => () => {} };

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-good\r\n\r\n`;
const megabyte = "GET / HTTP/1.1\r\nhost:\r\n\r\n".repeat(40_000);
const burst = 5;
const limits = { perIpPerSecond: 0.001, perIpBurst: burst };
/** Paths, and how many requests are admitted on each. Earlier paths have used up the same limit. */
const limited = {
  api: [
    ["/v1/models", burst],
    ["/nowhere", 0],
  ],
  portal: [
    ["/api/account", burst],
    ["/api/nowhere", 0],
    ["/", pagesPerRequest * burst],
    ["/openapi.json", 0],
    ["/nowhere", 0],
  ],
} as const;

describe.each([
  ["api", false],
  ["api", true],
  ["portal", false],
  ["portal", true],
] as const)("%s (TLS: %s)", (kind, isTls) => {
  const paths = { api: ["/v1/models", "/nowhere"], portal: ["/openapi.json", "/nowhere"] }[kind];
  const refused = { api: "403", portal: "404" }[kind];

  test("a client that pipelines gets its answers in order [D5]", async () => {
    await using listener = await startListener(kind, isTls ? { tls } : {});
    const client = new RawClient(listener.port, isTls);
    const count = 200;
    client.socket.write(paths.map(get).join("").repeat(count));
    await until(() => client.statuses.length === 2 * count, 20_000);
    expect(client.statuses).toEqual(Array.from({ length: count }, () => ["200", refused]).flat());
    expect(client.isEnded).toBe(false);
    client.socket.destroy();
  });

  test.each([
    ["two hosts", "HTTP/1.1\r\nhost: x\r\nhost: y"],
    ["no host", "HTTP/1.1\r\nx: y"],
    ["HTTP/2.0", "HTTP/2.0\r\nhost: x"],
    ["gzip below the chunks", "HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked"],
    ["chunks in HTTP/1.0", "HTTP/1.0\r\nhost: x\r\nconnection: keep-alive\r\ntransfer-encoding: chunked"],
  ])("a head with %s is refused, and nothing after it is read [D5]", async (_name, rest) => {
    await using listener = await startListener(kind, isTls ? { tls } : {});
    const client = new RawClient(listener.port, isTls);
    const chunks = rest.includes("chunked") ? "0\r\n\r\n" : "";
    client.socket.write(`GET ${paths[0]} ${rest}\r\n\r\n${chunks}${get(paths[0]!)}`);
    await until(() => client.isEnded || client.isClosed);
    expect(client.statuses).toEqual(["400"]);
    client.socket.destroy();
  });

  test("an address over its limit is refused once on a connection, and the connection is closed [D10]", async () => {
    await using listener = await startListener(kind, { limits, ...(isTls ? { tls } : {}) });
    for (const [path, first] of limited[kind])
      for (const admitted of [first, 0, 0]) {
        const client = new RawClient(listener.port, isTls);
        client.socket.write(get(path).repeat(first + 3));
        await until(() => client.isEnded || client.isClosed);
        expect(client.statuses.length).toBe(admitted + 1);
        expect(client.statuses.at(-1)).toBe("503");
        expect(client.received).toMatch(/connection: close\r\n(?!.*HTTP\/1\.1)/is);
        client.socket.destroy();
      }
  });
});

test.each([
  ["api", false],
  ["api", true],
  ["portal", false],
  ["portal", true],
] as const)(
  "connections of an address to the %s beyond five per request of its limit get no answer (TLS: %s) [D10]",
  async (kind, isTls) => {
    const few = { perIpPerSecond: 0.001, perIpBurst: 2 };
    await using listener = await startListener(kind, { limits: few, ...(isTls ? { tls } : {}) });
    const clients = Array.from({ length: 30 }, () => new RawClient(listener.port, isTls));
    for (const client of clients) client.socket.write(get("/nowhere"));
    await until(() => clients.every(({ isEnded, isClosed, received }) => isEnded || isClosed || received !== ""));
    expect(clients.filter(({ received }) => received !== "").length).toBe(10);
    for (const { socket } of clients) socket.destroy();
  },
);

test("the portal closes the connection after a path that cannot be decoded", async () => {
  await using listener = await startListener("portal");
  const client = new RawClient(listener.port);
  client.socket.write(get("/%zz").repeat(10));
  await until(() => client.isEnded || client.isClosed);
  expect(client.statuses).toEqual(["404"]);
  client.socket.destroy();
});

test("connections of a trusted proxy are not counted", async () => {
  const limits = { perIpPerSecond: 0.001, perIpBurst: 2, trustedProxies: ["127.0.0.0/8"] };
  await using api = await startApi({ limits });
  const clients = Array.from({ length: 30 }, () => new RawClient(api.port));
  for (const [n, client] of clients.entries())
    client.socket.write(
      get("/nowhere").replace("host", `x-forwarded-for: 1.1.1.1\r\nx-forwarded-for: 192.0.2.${n}\r\nhost`),
    );
  await until(() => clients.every(({ received }) => received !== ""));
  expect(new Set(clients.flatMap(({ statuses }) => statuses))).toEqual(new Set(["403"]));
  for (const { socket } of clients) socket.destroy();
});

test("of a megabyte of pipelined requests, as many are handled as the address's limit allows, and one is refused", async () => {
  await using api = await startApi({ limits });
  for (const handled of [burst + 1, 1, 1]) {
    const before = api.finished.length;
    const client = new RawClient(api.port);
    client.socket.write(megabyte);
    await until(() => client.isClosed || client.isEnded);
    expect(api.finished.length - before).toBe(handled);
    client.socket.destroy();
  }
});

test("the operations listener also reads one request at a time", async () => {
  const { promise: held, resolve } = Promise.withResolvers<void>();
  let scrapes = 0;
  const registry = {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    metrics: () => (scrapes++, held.then(() => "a 1\n")),
  };
  await using ops = await openOpsServer({
    ...{ config: { listen: { host: "127.0.0.1", port: 0 } }, metrics: registry, ready: () => true, clock: systemClock },
    events: { tlsReloaded() {}, tlsReloadFailed() {} },
  });
  const client = new RawClient(ops.address.port);
  client.socket.write(get("/metrics").repeat(500) + get("/healthz"));
  await until(() => scrapes > 0);
  await until(() => client.socket.writableLength === 0);
  expect(scrapes).toBe(1);
  resolve();
  await until(() => client.statuses.length === 501);
  expect(scrapes).toBe(500);
  client.socket.destroy();
});
