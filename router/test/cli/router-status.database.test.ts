/** `weiche status` and `weiche routers` of a whole router with certificates. */
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { version } from "@weiche/shared/program/version.ts";
import { makeAuthority, makeCertificate } from "../../src/certificates/certificate-folder.ts";
import { openClient } from "../../src/db/client.ts";
import { startWholeRouter, type WholeRouter } from "./whole-router.ts";

let whole: WholeRouter;
let folder: string;

beforeAll(async () => {
  const certificate = "ca/router-router1.example";
  whole = await startWholeRouter(
    `nodes: { tls: { cert: ${certificate}.pem, key: ${certificate}.key, ca: ca/ca.pem } }`,
    {
      level: "warn",
      prepare(path) {
        folder = path;
        const making = { folder: join(path, "ca"), nowMs: Date.now() };
        makeAuthority(making);
        makeCertificate({ ...making, days: 20 }, "router", ["router1.example"]);
      },
    },
  );
});
afterAll(() => whole[Symbol.asyncDispose]());

async function status(...options: string[]): Promise<string> {
  const { code, out } = await whole.weiche(...options, "status");
  expect(code).toBe(0);
  return out;
}

test("weiche status shows version, listeners, database, nodes and the remaining days of certificates", async () => {
  const known = JSON.parse(await status("--json")) as Record<string, unknown>;
  expect(known).toEqual({
    version,
    since: expect.stringMatching(/^20\d\d-/) as string,
    listeners: whole.router.listen,
    database: { server: "configured", answerMs: expect.any(Number) as number },
    otherRouters: 0,
    invoices: { since: null },
    nodes: { live: 0, known: 0 },
    certificates: [
      expect.objectContaining({ use: "nodes", file: "cert", path: join(folder, "ca/router-router1.example.pem") }),
      expect.objectContaining({ use: "nodes", file: "ca", path: join(folder, "ca/ca.pem") }),
    ],
    log: { level: "warn" },
  });
  const told = await status();
  expect(told).toMatch(/^database +configured, answers in \d+ ms$/m);
  expect(told).toMatch(/^nodes +0 of 0 live$/m);
  expect(told).toMatch(/^nodes +\S+router-router1\.example\.pem +20\S+Z +(19|20) +renew it$/m);
  expect(told).toMatch(/^nodes +\S+ca\.pem +20\S+Z +36\d\d +fine$/m);
  expect(told).not.toContain("postgres");
});

test("weiche routers lists this router with its addresses, version and clock, and one that is gone", async () => {
  const { listen } = whole.router;
  const list = async (...options: string[]) => (await whole.weiche(...options, "routers")).out;
  expect(JSON.parse(await list("--json"))).toEqual([
    {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      isThis: true,
      state: "ready",
      host: hostname(),
      version,
      startedAt: expect.stringMatching(/^20\d\d-/) as string,
      seenAt: expect.stringMatching(/^20\d\d-/) as string,
      linkAddress: listen.nodes,
      dataAddress: listen.data,
      runningRequests: 0,
      clockAheadMs: expect.any(Number) as number,
      limitStore: "memory",
      catalogue: expect.stringMatching(/^[0-9a-f]{12}$/) as string,
    },
  ]);
  expect(await list()).toMatch(
    new RegExp(
      `^${hostname()} ${listen.nodes} \\* +ready +${version} +0 +right +memory +[0-9a-f]{12} +20\\S+ +now$`,
      "m",
    ),
  );
});

test("routers with different catalogues are named below the list, and counted by a metric", async () => {
  const metric = async () => {
    const answer = await fetch(`http://${whole.router.listen.ops}/metrics`, { headers: { connection: "close" } });
    return /^weiche_router_catalogues (\d)$/m.exec(await answer.text())?.[1];
  };
  const list = async () => (await whole.weiche("routers")).out;
  expect([await metric(), await list()]).toEqual(["1", expect.not.stringContaining("different catalogues")]);
  await using client = await openClient({ connectionString: whole.databaseUrl });
  const other = "00000009-0000-7000-8000-000000000000";
  await client.query(
    "insert into routers (id, seen_at, state, catalogue) values ($1, now() + interval '1 hour', 'ready', '0123456789ab')",
    [other],
  );
  await expect.poll(metric, { timeout: 10_000 }).toBe("2");
  expect(await list()).toMatch(
    /\n\nThese routers have 2 different catalogues, so they bill differently\. Copy one file to all and run "weiche catalogue reload" on each\.\n$/,
  );
  // A router that is gone bills nothing.
  await client.query("update routers set seen_at = now() - interval '1 hour' where id = $1", [other]);
  await expect.poll(metric, { timeout: 10_000 }).toBe("1");
});

test("at its start a router warns of a certificate that expires within 30 days, but not of a later one", () => {
  const lines = whole.logged.filter((line) => line.includes("expires soon"));
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([{ level: 40, use: "nodes", file: "cert" }]);
});
