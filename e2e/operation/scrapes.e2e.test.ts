/**
 * Tests how Prometheus reaches the metrics of router and agents: with a token, over TLS, and of agents through the
 * router.
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import type { IncomingMessage } from "node:http";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTlsFiles } from "@weiche/shared/http/tls-files.ts";
import { nodeTargets, openOpsServer } from "@weiche/shared/program/ops-server.ts";
import { readOpsConfig } from "@weiche/shared/program/ops-access.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { Cluster, until } from "../cluster/cluster.ts";
import { parseMetrics } from "../cluster/metrics-text.ts";
import { simNodes } from "../cluster/sim-node.ts";
import { Certificates } from "../links/link-ends.ts";

const token = "a-token-of-a-scraper";
let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start({
    ...simNodes(["sim"]),
    router: { ops: { tokenFile: "data/token" } },
    prepare: (dataDir) => writeFileSync(join(dataDir, "token"), `${token}\n`, { mode: 0o600 }),
  });
});
afterAll(() => cluster[Symbol.asyncDispose]());

const ask = (path: string, bearer = token) =>
  fetch(`http://${cluster.router.listen["ops"]}${path}`, { headers: { authorization: `Bearer ${bearer}` } });

test("without the token the listener only returns whether the router is healthy", async () => {
  for (const path of ["/metrics", "/nodes", "/nodes/node-1/metrics", "/elsewhere"]) {
    expect([path, (await ask(path, `${token}x`)).status]).toEqual([path, 401]);
    expect((await fetch(`http://${cluster.router.listen["ops"]}${path}`)).status).toBe(401);
  }
  for (const path of ["/healthz", "/readyz"]) expect((await ask(path, "")).status).toBe(200);
  expect((await ask("/metrics")).status).toBe(200);
});

test("an agent's metrics are the same through its router as from the agent itself", async () => {
  const direct = await (await fetch(`http://${cluster.agents.get("node-1")!.listen["ops"]}/metrics`)).text();
  const handedOn = await ask("/nodes/node-1/metrics");
  expect(handedOn.headers.get("content-type")).toContain("text/plain; version=0.0.4");
  const names = (metrics: string) => [...parseMetrics(metrics).keys()].toSorted();
  expect(names(await handedOn.text())).toEqual(names(direct));
  expect((await ask("/nodes/node-2/metrics")).status).toBe(404);
});

test("the nodes are listed for Prometheus, by the listener and by the command", async () => {
  const address = cluster.router.listen["ops"]!;
  expect(await (await ask("/nodes")).json()).toEqual(nodeTargets(["node-1"], address));
  expect(await cluster.weiche("nodes", "--prometheus-sd", "router:9464")).toEqual([
    {
      targets: ["router:9464"],
      labels: { node: "node-1", instance: "node-1", __metrics_path__: "/nodes/node-1/metrics" },
    },
  ]);
  await expect(cluster.weiche("nodes", "--prometheus-sd", "router")).rejects.toThrow("is not host:port");
});

test("a gone node's metrics are refused within the time of a scrape", async () => {
  await cluster.agents.get("node-1")!.stop();
  await until("the node's metrics to be refused", async () => (await ask("/nodes/node-1/metrics")).status === 503);
  expect(await (await ask("/nodes/node-1/metrics")).text()).toBe("node-1 has no data connection\n");
});

test("outside loopback metrics require TLS or a token", () => {
  const anywhere = { host: "0.0.0.0", port: 9464 };
  expect(() => readOpsConfig(anywhere, undefined, "/")).toThrow(
    "listen.ops 0.0.0.0:9464 is not loopback: set ops.tls (cert, key) or ops.tokenFile, or listen on 127.0.0.1",
  );
  expect(readOpsConfig(anywhere, { tls: { cert: "c.pem", key: "k.pem" } }, "/etc").tls).toEqual({
    cert: "/etc/c.pem",
    key: "/etc/k.pem",
  });
  const short = join(cluster.directory, "short-token");
  writeFileSync(short, "short\n", { mode: 0o600 });
  expect(() => readOpsConfig(anywhere, { tokenFile: short }, "/")).toThrow("must hold 16 to 256 letters");
});

test("over TLS a certificate renewed on disk is used for the next connection", async () => {
  using certificates = new Certificates();
  const clock = new VirtualClock();
  const paths = certificates.router("localhost");
  const events = { tlsReloaded() {}, tlsReloadFailed() {} };
  await using ops = await openOpsServer({
    config: { listen: { host: "127.0.0.1", port: 0 }, tls: { cert: paths.cert, key: paths.key } },
    ...{
      metrics: { contentType: Registry.PROMETHEUS_CONTENT_TYPE, metrics: async () => "a 1\n" },
      ready: () => true,
      clock,
      events,
    },
  });
  using trusted = openTlsFiles(paths, clock, events);
  const serial = async () => {
    const asked = request({
      ...ops.address,
      path: "/metrics",
      ca: trusted.current.ca,
      agent: false,
      servername: "localhost",
    });
    const [response] = (await once(asked.end(), "response")) as [IncomingMessage];
    const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate();
    expect(await text(response)).toBe("a 1\n");
    return serialNumber;
  };
  const before = await serial();
  certificates.router("localhost");
  await clock.advanceAsync(5_000);
  expect(await serial()).not.toBe(before);
});
