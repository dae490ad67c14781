/**
 * Tests HTTPS as an operator configures it. Certificate and key for API and portal are in the router's file, and are
 * replaced while it runs.
 */
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askTls, certificate } from "@weiche/router/test/nodes/certificate.ts";
import { Cluster, until } from "../cluster/cluster.ts";
import { simNodes } from "../cluster/sim-node.ts";

const folder = mkdtempSync(join(tmpdir(), "weiche-api-tls-"));
const [cert, key] = [join(folder, "api.pem"), join(folder, "api.key")];
let cluster: Cluster;
let authorization: string;

beforeAll(async () => {
  for (const name of ["first", "second"]) certificate(folder, name);
  use("first");
  cluster = await Cluster.start({ ...simNodes(["chat"], ["n1"]), router: { tls: { cert, key } } });
  authorization = `Bearer ${(await cluster.account()).apiKey}`;
}, 90_000);
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function use(name: string): void {
  copyFileSync(join(folder, `${name}.pem`), cert);
  copyFileSync(join(folder, `${name}.key`), key);
}

const portOf = (what: "api" | "portal") => Number(new URL(`https://${cluster.router.listen[what]}`).port);
const api = () => askTls(portOf("api"), "/v1/models", { authorization });
const portal = () => askTls(portOf("portal"), "/");

/** Opens a stream that runs for another minute and a half. */
async function openStream(): Promise<IncomingMessage> {
  const asking = request({
    ...{ port: portOf("api"), host: "127.0.0.1", path: "/v1/chat/completions", method: "POST", agent: false },
    headers: { authorization, "content-type": "application/json" },
    rejectUnauthorized: false,
  });
  const messages = [{ role: "user", content: "sim:tokens=18000" }];
  asking.end(JSON.stringify({ model: "chat", stream: true, messages }));
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  return answer.setEncoding("utf8");
}

test("API and portal use HTTPS, new connections get a replaced certificate, and open streams continue", async () => {
  expect(await Promise.all([api(), portal()])).toEqual([
    ["first", 200],
    ["first", 200],
  ]);
  await expect(fetch(`${cluster.baseUrl}/models`)).rejects.toThrow("fetch failed"); // plain HTTP

  const stream = await openStream();
  let pieces = 0;
  stream.on("data", () => pieces++);
  use("second");
  for (const ask of [api, portal])
    await until("the second certificate", async () => (await ask())[0] === "second", 60_000);
  const before = pieces;
  await until("more of the stream", () => pieces > before + 10);
  expect(stream.complete).toBe(false);
  stream.destroy();
});
