import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { expect, test } from "vitest";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import { issueAuthority, issueCertificate } from "../certificates/issue.ts";
import { connectionsPerNameMax } from "./certificate-limit.ts";
import { openNodeListener } from "./node-listener.ts";
import { failures, StrangerLimit } from "./stranger-limit.ts";

test("the kernel's queue holds a thousand nodes that dial at once, more than the default of Node.js", async () => {
  const accepted: Socket[] = [];
  const accept = (socket: Socket) => void accepted.push(socket.on("error", () => {}));
  const parts = { alpn: "x", clock: systemClock, accept, onCrowd() {}, onTooMany() {}, onTlsRefused() {} };
  const listener = await openNodeListener({ ...parts, listen: { host: "127.0.0.1", port: 0 } });
  const dialled = Array.from({ length: 1_000 }, () =>
    connect(listener.address.port, "127.0.0.1").on("error", () => {}),
  );
  for (let turn = 0; turn < 100; turn++) await nextTurn();
  expect(dialled.filter(({ connecting }) => connecting).length).toBe(0);
  expect(accepted.length).toBe(1_000);
  await listener.close(0);
});

/** No limit regains room, however long a busy machine takes. */
const still: Clock = { now: () => 0, monotonicMs: () => 0, after: (ms, run) => systemClock.after(ms, run) };

/** Opens a listener with mutual TLS. Returns it with the certificates that its clients need. */
async function openSecure(handshakeMsMax: number) {
  const validity = { fromMs: Date.now() - 60_000, days: 2 };
  const { cert: ca, key: caKey } = issueAuthority(validity);
  const authority = { cert: new X509Certificate(ca), key: createPrivateKey(caKey) };
  const own = issueCertificate(authority, ["localhost"], validity);
  const current = { ...own, ca, minVersion: "TLSv1.3" };
  const tls = { current, paths: {}, onChange: () => () => {} } as unknown as TlsFiles;
  const strangers = new StrangerLimit(still, () => false);
  const seen = { accepted: [] as Socket[], crowd: 0, refused: 0, tooMany: [] as string[] };
  const listener = await openNodeListener({
    ...{ alpn: "x", clock: still, tls, strangers, handshakeMsMax, listen: { host: "127.0.0.1", port: 0 } },
    accept: (socket) => void seen.accepted.push(socket.on("error", () => {})),
    onCrowd: () => seen.crowd++,
    onTooMany: (reason, names) => seen.tooMany.push(`${reason} ${names}`),
    onTlsRefused: () => seen.refused++,
  });
  const { port } = listener.address;
  const as = { host: "127.0.0.1", port, servername: "localhost", ALPNProtocols: ["x"], ...own, ca };
  const node = (localAddress = "127.0.0.1") => connectTls({ ...as, ...{ localAddress } }).on("error", () => {});
  const anonymous = () =>
    connectTls({ host: "127.0.0.1", port, servername: "localhost", ALPNProtocols: ["x"], ca })
      .on("error", () => {})
      .resume();
  const stranger = () =>
    connect(port, "127.0.0.1")
      .on("error", () => {})
      .resume();
  return { listener, strangers, seen, node, anonymous, stranger };
}

test("a client without a certificate is refused and gets no session to resume", async () => {
  const { listener, seen, node, anonymous } = await openSecure(500);
  const client = anonymous();
  let sessions = 0;
  client.on("session", () => sessions++);
  await once(client, "close");
  expect([seen.refused, seen.accepted.length, sessions]).toEqual([1, 0, 0]);
  const known = node();
  await once(known, "secureConnect");
  await expect.poll(() => seen.accepted.length).toBe(1);
  known.destroy();
  await listener.close(0);
});

test("silent strangers are reset above a limit and closed after the handshake's timeout, and do not affect linked nodes [D10]", async () => {
  const { listener, strangers, seen, node, stranger } = await openSecure(500);
  const before: Socket[] = [];
  for (let n = 0; n < 20; n++) {
    before.push(node());
    await once(before.at(-1)!, "secureConnect");
  }
  await expect.poll(() => seen.accepted.length).toBe(20);
  const held = Array.from({ length: 400 }, stranger);
  await expect.poll(() => held.filter(({ destroyed }) => destroyed).length, { timeout: 20_000 }).toBe(400);
  expect(seen.crowd).toBeGreaterThan(0);
  expect(seen.refused + seen.crowd).toBeGreaterThanOrEqual(400);
  // On a busy machine the first handshakes time out before the last ones begin.
  expect(seen.refused).toBeGreaterThanOrEqual(failures.perIpBurst);
  await expect.poll(() => strangers.handshakes).toBe(0);
  expect(before.every((socket) => !socket.destroyed)).toBe(true);
  await listener.close(0);
});

test("nodes behind one address are accepted one after the other, and none counts as a stranger", async () => {
  const { listener, strangers, seen, node } = await openSecure(5_000);
  for (let rounds = 0; rounds < 6; rounds++) {
    const dialled = Array.from({ length: 10 }, () => node());
    await Promise.all(dialled.map((socket) => once(socket, "secureConnect")));
  }
  await expect.poll(() => seen.accepted.length).toBe(60);
  expect(strangers.handshakes).toBe(0);
  expect(seen).toMatchObject({ crowd: 0, refused: 0 });
  await listener.close(0);
});

test("a node with a valid certificate has a limited number of connections, and gets a new one for each that ends [D10]", async () => {
  const { listener, strangers, seen, node } = await openSecure(5_000);
  const dialled: Socket[] = [];
  for (let n = 0; n < connectionsPerNameMax + 5; n++) {
    const socket = node();
    dialled.push(socket);
    await once(socket, "secureConnect");
  }
  await expect.poll(() => seen.tooMany).toEqual(Array(5).fill("too-many DNS:localhost"));
  expect(seen.accepted).toHaveLength(connectionsPerNameMax);
  await expect.poll(() => dialled.filter(({ destroyed }) => destroyed).length).toBe(5);
  dialled[0]!.destroy();
  await expect.poll(() => seen.accepted.filter(({ destroyed }) => destroyed).length).toBe(1);
  node();
  await expect.poll(() => seen.accepted.length).toBe(connectionsPerNameMax + 1);
  expect({ tooMany: seen.tooMany.length, handshakes: strangers.handshakes }).toEqual({ tooMany: 5, handshakes: 0 });
  await listener.close(0);
});

test("a node that connects again and again is refused after the handshake, and soon before it, without effect on other addresses [D10]", async () => {
  const { listener, strangers, seen, node } = await openSecure(5_000);
  const knock = async (localAddress: string) => {
    const socket = node(localAddress);
    // The router sends a ticket once it has seen the certificate.
    socket.once("session", () => socket.destroy());
    await new Promise((resolve) => socket.once("close", resolve));
  };
  for (let n = 0; n < 100 && seen.crowd === 0; n++)
    await Promise.all(Array.from({ length: 10 }, () => knock("127.0.0.1")));
  expect(seen.crowd).toBeGreaterThan(0);
  expect(new Set(seen.tooMany)).toEqual(new Set(["too-often DNS:localhost"]));
  const from = { crowd: seen.crowd, handshakes: seen.accepted.length + seen.tooMany.length };
  for (let n = 0; n < 50; n++) await knock("127.0.0.1");
  expect(seen.crowd - from.crowd).toBe(50);
  const before = seen.tooMany.length;
  await knock("127.0.0.2");
  await expect.poll(() => seen.tooMany.length + seen.accepted.length).toBeGreaterThan(before);
  await expect.poll(() => strangers.handshakes).toBe(0);
  await listener.close(0);
});
