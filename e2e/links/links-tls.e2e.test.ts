/** Tests mutual TLS on links and data connections with certificates as operators make them. */
import { chmodSync, copyFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:tls";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dataAlpn } from "@weiche/shared/node-protocol.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { openTlsFiles, type TlsFiles, type TlsFilesEvents, type TlsPaths } from "@weiche/shared/http/tls-files.ts";
import { textOf } from "../cluster/read-answer.ts";
import { answering, Certificates, holding, node, openAgentEnd, openRouterEnd, requestOf } from "./link-ends.ts";
import { PlainPeer } from "./plain-peer.ts";
import { addressOf, openWholeAgent, openWholeRouter, type WholeRouter } from "./whole-links.ts";
import { toldEvents } from "@weiche/shared/testing/told-events.ts";

let ours: Certificates;
let theirs: Certificates;
let routerTls: TlsFiles;
let agentTls: TlsFiles;

beforeAll(() => {
  [ours, theirs] = [new Certificates(), new Certificates()];
  routerTls = ours.open(ours.router("router.example", "localhost", "127.0.0.1"));
  agentTls = ours.open(ours.node(node));
});
afterAll(() => {
  ours[Symbol.dispose]();
  theirs[Symbol.dispose]();
});

async function reachable(router: WholeRouter): Promise<void> {
  await expect.poll(() => router.isReachable(), { timeout: 5_000, interval: 10 }).toBe(true);
}

test.each(["127.0.0.1", "localhost", "router.example"])("a node links to %s and answers", async (host) => {
  await using router = await openWholeRouter({ tls: routerTls });
  await using _agent = openWholeAgent([addressOf(router, host)], { tls: agentTls });
  await reachable(router);
  const answer = await router.data.send(node, requestOf(), new AbortController().signal);
  expect(await textOf(answer)).toBe("hello");
  expect(answer.body.ending).toBe("complete");
});

describe("a link is refused, and both ends report the reason, to an agent", () => {
  test.each<[string, () => TlsFiles | undefined, reason: string, atRouter: RegExp, atAgent: RegExp]>([
    [
      "of another authority",
      () => mixed(theirs.node(node), ours),
      "tls",
      /^the node's certificate \(gpu-1\) is not signed by an authority in .*ca\.pem$/,
      /node-gpu-1\.pem is not signed by .*ca\.pem/,
    ],
    [
      "whose certificate has expired",
      () => ours.open(ours.node("expired", -1)),
      "tls",
      /^the node's certificate \(expired\) expired at 20\S+Z$/,
      /node-expired\.pem expired at 20\S+Z: renew it/,
    ],
    ["without TLS", () => undefined, "tls", /^the client does not use TLS$/, /routerLinkFailed/],
    ["with another node's certificate", () => ours.open(ours.node("gpu-2")), "name", /./, /routerLinkFailed/],
    [
      "with a router's certificate",
      () => ours.open(ours.paths("router-router.example")),
      "name",
      /./,
      /routerLinkFailed/,
    ],
  ])("%s", async (_what, open, reason, atRouter, atAgent) => {
    await using router = await openWholeRouter({ tls: routerTls });
    const tls = open();
    await using agent = openWholeAgent([addressOf(router)], tls ? { tls } : {});
    await expect
      .poll(() => router.told, { timeout: 5_000 })
      .toContainEqual(["nodeRefused", reason, expect.stringMatching(atRouter), expect.any(String)]);
    await expect.poll(() => agent.told.flat().join(" "), { timeout: 5_000 }).toMatch(atAgent);
    await expect.poll(() => agent.links.states()[0]?.reason, { timeout: 5_000 }).toBeDefined();
    expect(router.registry.view(0)).toEqual([]);
  });

  test("that dials a name which is not in the router's certificate", async () => {
    await using router = await openWholeRouter({ tls: ours.open(ours.router("other.example")) });
    await using agent = openWholeAgent([addressOf(router, "localhost")], { tls: agentTls });
    const reason = "the router's certificate has only the names other.example, but agent.yaml calls it localhost";
    await expect.poll(() => agent.links.states()[0]?.reason, { timeout: 5_000 }).toBe(reason);
    expect(agent.told).toContainEqual(["routerLinkFailed", expect.any(String), reason]);
    expect(router.registry.view(0)).toEqual([]);
  });

  test("that trusts a different authority", async () => {
    await using router = await openWholeRouter({ tls: routerTls });
    await using agent = openWholeAgent([addressOf(router)], { tls: mixed(ours.node("gpu-3"), theirs) });
    await expect
      .poll(() => agent.links.states()[0]?.reason, { timeout: 5_000 })
      .toMatch(/^the router's certificate \(router\.example, .*\) is not signed by an authority in .*ca\.pem$/);
    expect(router.registry.view(0)).toEqual([]);
  });

  test("whose router has a certificate that has expired", async () => {
    await using router = await openWholeRouter({ tls: ours.open(ours.expiredRouter()) });
    await using agent = openWholeAgent([addressOf(router)], { tls: agentTls });
    await expect
      .poll(() => agent.links.states()[0]?.reason, { timeout: 5_000 })
      .toMatch(/^the router's certificate \(127\.0\.0\.1\) expired at 20\S+Z$/);
  });
});

test.each<[string, () => TlsFiles, string]>([
  ["another node's certificate", () => ours.open(ours.node("gpu-2")), "name"],
  ["a certificate of another authority", () => mixed(theirs.node(node), ours), "tls"],
  ["an expired certificate", () => ours.open(ours.node("expired", -1)), "tls"],
])("a data connection with %s is refused, and both ends report it", async (_what, open, reason) => {
  await using router = await openRouterEnd({ tls: routerTls });
  await using agent = openAgentEnd(router.data.address.port, answering("x"), { tls: open() });
  await expect
    .poll(() => router.told)
    .toContainEqual(["dataConnectionRefused", reason, expect.any(String), expect.any(String)]);
  await expect
    .poll(() => agent.told.map(([event]) => event))
    .toContainEqual(expect.stringMatching(/dataConnection(Failed|Down)/));
  expect(router.told.map(([event]) => event)).not.toContain("dataConnectionUp");
});

test("TLS 1.2 is refused", async () => {
  await using router = await openRouterEnd({ tls: routerTls });
  const { port } = router.data.address;
  const socket = connect({
    host: "127.0.0.1",
    port,
    ...agentTls.current,
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.2",
  });
  await expect(once(socket, "secureConnect")).rejects.toThrow(/version/);
});

test.each([
  ["another protocol", ["h2"], "tls"],
  ["no protocol", [], "protocol"],
])("a data connection that offers %s is closed, and the router reports why", async (_what, ALPNProtocols, reason) => {
  await using router = await openRouterEnd({ tls: routerTls });
  const socket = connect({ ...router.data.address, ...agentTls.current, ALPNProtocols });
  await new Promise((resolve) => socket.on("error", () => {}).once("close", resolve));
  await expect
    .poll(() => router.told)
    .toEqual([["dataConnectionRefused", reason, expect.any(String), expect.any(String)]]);
});

test("an agent closes a connection whose router chose no protocol, reports why, and sends nothing on it", async () => {
  const peers: PlainPeer[] = [];
  const server = createServer({ ...routerTls.current, requestCert: true }, (socket) => {
    const peer = new PlainPeer(socket, "router");
    peers.push(peer);
    peer.open(["/weiche/identity"], "");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  await using agent = openAgentEnd((server.address() as AddressInfo).port, answering("x"), { tls: agentTls });
  const failed = ["dataConnectionFailed", "router-1", `the router does not speak ${dataAlpn}`];
  await expect.poll(() => agent.told).toEqual([failed]);
  expect(peers.flatMap(({ frames }) => frames)).toEqual([]);
  server.close();
});

test("a node with a new certificate opens new connections, and running streams end on the old ones", async () => {
  const clock = new VirtualClock();
  const paths = ours.node("renewed");
  using tls = openTlsFiles(paths, clock, toldEvents<TlsFilesEvents>().events);
  await using router = await openWholeRouter({ tls: routerTls });
  const { streams, handle } = holding();
  await using agent = openWholeAgent([addressOf(router)], {
    tls,
    node: "renewed",
    handle,
  });
  await reachable(router);
  const send = () => router.data.send("renewed" as typeof node, requestOf(), new AbortController().signal);
  const answer = await send();
  ours.node("renewed");
  await clock.advanceAsync(5_000);
  await expect.poll(() => router.told.filter(([event]) => event === "dataConnectionUp").length).toBe(2);
  await expect.poll(() => router.registry.details(0)[0]!.dataConnections).toBe(1);
  expect(router.isReachable()).toBe(true);
  const next = await send();
  expect(streams.map(({ frames }) => frames.id)).toEqual([2, 2]); // each is the first request of its connection
  for (const stream of streams) stream.finish("done");
  expect(await textOf(answer)).toBe("begun done");
  expect(await textOf(next)).toBe("begun done");
  expect([answer.body.ending, next.body.ending]).toEqual(["complete", "complete"]);
  await expect.poll(() => agent.links.states()[0]!.dataSessions).toBe(1);
});

describe("a certificate that expires while answers run", () => {
  const lifeMs = 6_000;
  const renewed = "renewed-in-time" as typeof node;
  const forgotten = "forgotten" as typeof node;

  test("ends no answer: a renewed node links anew before, and a node without a new certificate gets no further requests", async () => {
    const clock = new VirtualClock();
    for (const name of [renewed, forgotten]) ours.node(name);
    const endsMs = Date.now() + lifeMs;
    const [paths] = [renewed, forgotten].map((name) => ours.endAt(name, new Date(endsMs)));
    using tls = openTlsFiles(paths!, clock, toldEvents<TlsFilesEvents>().events);
    await using router = await openWholeRouter({ tls: routerTls });
    const { streams, handle } = holding();
    await using agent = openWholeAgent([addressOf(router)], { tls, node: renewed, handle });
    const late = openWholeAgent([addressOf(router)], {
      tls: ours.open(ours.paths(`node-${forgotten}`)),
      node: forgotten,
      handle,
    });
    await using _late = late;
    const isReachable = (name: string) =>
      router.registry.view(performance.now()).some((one) => one.node === name && one.reachable);
    const told = (name: string) => router.told.filter(([, of]) => of === name).map(([event]) => event);
    const send = (name: typeof node) => router.data.send(name, requestOf(), new AbortController().signal);
    for (const name of [renewed, forgotten]) await expect.poll(() => isReachable(name), { timeout: lifeMs }).toBe(true);
    const [outlived, lost] = await Promise.all([send(renewed), send(forgotten)]);

    let unreachable = 0;
    const watch = setInterval(() => (unreachable += isReachable(renewed) ? 0 : 1), 1);
    ours.node(renewed);
    await clock.advanceAsync(5_000);
    await expect.poll(() => told(renewed), { timeout: 10_000 }).toContain("nodeUnlinked");
    clearInterval(watch);
    expect(unreachable).toBe(0);
    expect(router.told).toContainEqual(["nodeUnlinked", renewed, "replaced"]);
    expect(told(renewed).filter((event) => event === "nodeLinked")).toHaveLength(2);
    expect(agent.told.map(([event]) => event)).not.toContain("routerLinkDown");
    expect([...agent.channels.keys()]).toEqual(["router-1"]);

    await expect.poll(() => Date.now() > endsMs + 1_000, { timeout: lifeMs + 5_000, interval: 100 }).toBe(true);
    expect(streams.map(({ isOver }) => isOver)).toEqual([false, false]);
    await late.links.close();
    expect(lost.body.ending).not.toBe("complete");
    await using gone = openWholeAgent([addressOf(router)], {
      tls: ours.open(ours.paths(`node-${forgotten}`)),
      node: forgotten,
    });
    await expect.poll(() => gone.told.flat().join(" "), { timeout: 10_000 }).toMatch(/routerLinkFailed/);
    await expect
      .poll(() => router.told)
      .toContainEqual(["nodeRefused", "tls", expect.stringContaining("expired at"), expect.any(String)]);
    expect(isReachable(renewed)).toBe(true);
    for (const stream of streams) stream.finish("done");
    expect(await textOf(outlived)).toBe("begun done");
    expect(outlived.body.ending).toBe("complete");
  });
});

test("the router's new certificate is used for new connections on both ports, and old ones continue", async () => {
  const clock = new VirtualClock();
  const paths = ours.router("renewed.example", "127.0.0.1");
  using tls = openTlsFiles(paths, clock, toldEvents<TlsFilesEvents>().events);
  await using router = await openWholeRouter({ tls });
  await using _agent = openWholeAgent([addressOf(router)], { tls: agentTls });
  await reachable(router);
  const before = await Promise.all([serialAt(router.link.address, "h2"), serialAt(router.data.address, dataAlpn)]);
  expect(before[0]).toBe(before[1]);
  ours.router("renewed.example", "127.0.0.1");
  await clock.advanceAsync(5_000);
  const after = await Promise.all([serialAt(router.link.address, "h2"), serialAt(router.data.address, dataAlpn)]);
  expect(after[0]).toBe(after[1]);
  expect(after[0]).not.toBe(before[0]);
  expect(router.isReachable()).toBe(true);
  expect(router.told.map(([event]) => event)).not.toContain("nodeUnlinked");
});

describe("certificate files", () => {
  test("that do not fit are reported once, and the previous files stay in use", async () => {
    const clock = new VirtualClock();
    const paths = ours.node("misfit");
    const { events, told } = toldEvents<TlsFilesEvents>();
    const names = () => told.map(([event]) => event);
    using tls = openTlsFiles(paths, clock, events);
    const before = tls.current;
    copyFileSync(ours.paths(`node-${node}`).cert, paths.cert);
    await clock.advanceAsync(30_000);
    expect(tls.current).toBe(before);
    expect(names()).toEqual(["tlsReloadFailed"]);
    ours.node("misfit");
    await clock.advanceAsync(5_000);
    expect(tls.current).not.toBe(before);
    expect(names()).toEqual(["tlsReloadFailed", "tlsReloaded"]);
  });

  test("that are missing, do not fit or let others read the key prevent the start [G1]", () => {
    const good = ours.node("careless");
    const open = (paths: TlsPaths) => openTlsFiles(paths, new VirtualClock(), toldEvents<TlsFilesEvents>().events);
    expect(() => open({ ...good, ca: `${good.ca}.missing` })).toThrow(StartError);
    expect(() => open({ ...good, key: ours.paths(`node-${node}`).key })).toThrow(StartError);
    chmodSync(good.key, 0o644);
    expect(() => open(good)).toThrow(/holds a private key, but its mode 0644/);
  });
});

/** Returns the certificate and key of one authority with trust in the other. */
function mixed(paths: TlsPaths, trusted: Certificates): TlsFiles {
  return trusted.open({ ...paths, ca: trusted.paths("").ca });
}

async function serialAt({ port }: { readonly port: number }, alpn: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, ...agentTls.current, ALPNProtocols: [alpn] });
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerX509Certificate()!;
  socket.destroy();
  return serialNumber;
}
