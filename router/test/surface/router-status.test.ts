/** `weiche status` of a whole router with certificates, as its operator reads it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { version } from "@weiche/shared/program/version.ts";
import { makeAuthority, makeCertificate } from "../../src/certificates/certificate-folder.ts";
import { loadRouterConfig } from "../../src/config/config.ts";
import { createRouter, type Router } from "../../src/context.ts";
import { runCli } from "../../src/surface/cli/cli.ts";
import { startDatabaseServer, temporaryFolder, type DatabaseServer } from "../db/database-fixture.ts";

const folder = temporaryFolder();
const logged: string[] = [];
let server: DatabaseServer;
let router: Router;

beforeAll(async () => {
  server = await startDatabaseServer();
  const { connection } = await server.newDatabase();
  const making = { folder: join(folder.path, "ca"), nowMs: Date.now() };
  makeAuthority(making);
  makeCertificate({ ...making, days: 20 }, "router", ["router1.example"]);
  const listeners = ["api", "portal", "nodes", "data", "ops"].map((name) => `${name}: "127.0.0.1:0"`).join(", ");
  const file = join(folder.path, "router.yaml");
  writeFileSync(
    file,
    `catalogue: ${join(import.meta.dirname, "../../../deploy/catalogue.yaml")}
dataDir: data
database: { url: "${connection.connectionString!}" }
listen: { ${listeners}, console: off }
nodes: { tls: { cert: ca/router-router1.example.pem, key: ca/router-router1.example.key, ca: ca/ca.pem } }
`,
    { mode: 0o600 },
  );
  const log = pino({ level: "warn" }, { write: (line: string) => void logged.push(line) });
  router = await createRouter(loadRouterConfig(file, {}), { log });
});
afterAll(async () => {
  await router.close();
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function status(...options: string[]): Promise<string> {
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const args = ["--data-dir", join(folder.path, "data"), ...options, "status"];
  expect(await runCli(args, {}, { input: new PassThrough(), output, errors })).toBe(0);
  output.end();
  return text(output);
}

test("a router shows its version, listeners, database, nodes and the days that its certificates have left", async () => {
  const known = JSON.parse(await status("--json")) as Record<string, unknown>;
  expect(known).toEqual({
    version,
    since: expect.stringMatching(/^20\d\d-/) as string,
    listeners: router.listen,
    database: { server: "configured", answerMs: expect.any(Number) as number },
    otherRouters: 0,
    nodes: { live: 0, known: 0 },
    certificates: [
      expect.objectContaining({ use: "nodes", file: "cert", path: join(folder.path, "ca/router-router1.example.pem") }),
      expect.objectContaining({ use: "nodes", file: "ca", path: join(folder.path, "ca/ca.pem") }),
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

test("a certificate that ends within 30 days is one warning at the start, and one with more days is none", () => {
  const lines = logged.filter((line) => line.includes("expires soon"));
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([{ level: 40, use: "nodes", file: "cert" }]);
});
