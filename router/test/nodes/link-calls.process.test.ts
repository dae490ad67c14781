/** Many calls on one connection to the port for links. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect, type ClientHttp2Session } from "node:http2";
import { expect, onTestFinished, test } from "vitest";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import { issueAuthority, issueCertificate } from "../../src/certificates/issue.ts";
import { NodeLinkRig } from "./node-link-rig.ts";

const link = "/weiche.node.v1.NodeControlService/Link";
const invalid = Buffer.from([0, 0, 0, 0, 1, 0xff]);

const validity = { fromMs: Date.now() - 60_000, days: 2 };
const { cert: ca, key: caKey } = issueAuthority(validity);
const authority = { cert: new X509Certificate(ca), key: createPrivateKey(caKey) };
const issue = (name: string) => ({ ...issueCertificate(authority, [name], validity), ca });

/** `own`: the client's certificate. If undefined, the connection is plain. */
function dial(
  rig: NodeLinkRig,
  own?: { readonly cert: string; readonly key: string; readonly ca: string },
): ClientHttp2Session {
  const address = `127.0.0.1:${rig.link.address.port}`;
  const session = own
    ? connect(`https://${address}`, { ...own, servername: "localhost" })
    : connect(`http://${address}`);
  session.on("error", () => {});
  onTestFinished(() => session.destroy());
  return session;
}

/** Makes one call and returns its gRPC status, or undefined if the connection was closed. */
async function call(session: ClientHttp2Session, path: string): Promise<string | undefined> {
  if (session.destroyed) return undefined;
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  let status: string | undefined;
  stream.on("error", () => {}).on("response", (head) => (status ??= head["grpc-status"] as string | undefined));
  stream.on("trailers", (head) => (status ??= head["grpc-status"] as string | undefined)).resume();
  stream.end(invalid);
  await new Promise((resolve) => stream.once("close", resolve));
  return status;
}

/** Makes calls, eight at once, until the connection is closed. Returns how many got a status. */
async function flood(session: ClientHttp2Session, path: string): Promise<number> {
  let answered = 0;
  const one = async () => {
    while ((await call(session, path)) !== undefined) answered++;
  };
  await Promise.all(Array.from({ length: 8 }, one));
  return answered;
}

const tooOften = (rig: NodeLinkRig) =>
  rig.told.filter(([event, reason]) => event === "refused" && reason === "too-often");

test.each([
  ["that are refused", link],
  ["of a method that does not exist", "/no.Such/Method"],
])("a connection with more calls %s than an agent has is closed, and links stay [D10]", async (_name, path) => {
  await using rig = await NodeLinkRig.open();
  const linked = await rig.linked();
  const answered = await flood(dial(rig), path);
  expect(answered).toBeGreaterThan(100);
  expect(answered).toBeLessThan(250);
  expect(tooOften(rig)).toHaveLength(1);
  await rig.linked(2, "gpu-2");
  expect(rig.told.filter(([event]) => event === "unlinked")).toEqual([]);
  const before = linked.heartbeats;
  await expect.poll(() => linked.heartbeats, { timeout: 10_000 }).toBeGreaterThan(before);
});

test("all connections of a certificate share the limit of calls, and other nodes have their own [D10]", async () => {
  const current = { ...issue("localhost"), minVersion: "TLSv1.3" };
  await using rig = await NodeLinkRig.open(undefined, {
    tls: { current, onChange: () => () => {} } as unknown as TlsFiles,
  });
  const [first, second] = [issue("gpu-1"), issue("gpu-2")];
  const sessions = [dial(rig, first), dial(rig, first), dial(rig, second)];
  await Promise.all(sessions.map((session) => once(session, "remoteSettings")));
  expect(await flood(sessions[0]!, link)).toBeGreaterThan(100);
  expect(await flood(sessions[1]!, link)).toBeLessThan(30);
  expect(await call(sessions[2]!, link)).toBeDefined();
  expect(tooOften(rig).map(([, , names]) => names)).toEqual(["DNS:gpu-1", "DNS:gpu-1"]);
});

test("calls that their client resets at once count, too [D10]", async () => {
  await using rig = await NodeLinkRig.open();
  const session = dial(rig);
  const closed = new Promise((resolve) => session.once("close", resolve));
  const more = setInterval(() => {
    if (session.destroyed) return;
    for (let n = 0; n < 4; n++)
      session
        .request({ ":method": "POST", ":path": link })
        .on("error", () => {})
        .close(8);
  }, 1);
  onTestFinished(() => clearInterval(more));
  await closed;
  expect(tooOften(rig)).toHaveLength(1);
});

test("a connection has eight calls at once [D10]", async () => {
  await using rig = await NodeLinkRig.open();
  const session = dial(rig);
  const settings = once(session, "remoteSettings");
  expect((await settings)[0]).toMatchObject({ maxConcurrentStreams: 8 });
});
