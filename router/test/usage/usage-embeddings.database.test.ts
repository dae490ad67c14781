/** A whole router, and an agent that reports output tokens of an embedding model. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7 } from "@weiche/shared/ids.ts";
import { loadRouterConfig } from "../../src/config/config.ts";
import { createRouter, type Router } from "../../src/context.ts";
import { readGrants, type Grants } from "../../src/usage/grants.ts";
import { testDatabases, temporaryFolder, type TestDatabases } from "../db/database-fixture.ts";
import { bootId, helloOf, LinkClient } from "../nodes/link-client.ts";

const bin = join(import.meta.dirname, "../../../node_modules/.bin/weiche");
const folder = temporaryFolder();
let server: TestDatabases;
let grants: Grants;
let router: Router;

beforeAll(async () => {
  server = await testDatabases();
  const { pool, connection } = await server.newDatabase();
  grants = await readGrants(pool);
  const file = join(folder.path, "router.yaml");
  writeFileSync(
    file,
    `catalogue: ${join(import.meta.dirname, "../../../deploy/catalogue.yaml")}
dataDir: data
database: { url: "${connection.connectionString}" }
listen: { api: "127.0.0.1:0", portal: "127.0.0.1:0", console: off, nodes: "127.0.0.1:0", data: "127.0.0.1:0", ops: "127.0.0.1:0" }
logLevel: fatal
shutdownAcceptSeconds: 0
`,
    { mode: 0o600 }, // it contains the password of the database
  );
  router = await createRouter(loadRouterConfig(file, {}));
});
afterAll(async () => {
  await router.close();
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function weiche<T>(...args: string[]): Promise<T> {
  const all = [bin, "--data-dir", join(folder.path, "data"), ...args, "--json"];
  return JSON.parse((await promisify(execFile)(process.execPath, all)).stdout) as T;
}

test("reported output of an embedding model is neither counted nor charged; output of other models is [S20.3]", async () => {
  const wish = ["--name", "ACME", "--owner-email", "ada@example.com", "--package", "Pro", "--yes"];
  const { id, ownerUserId } = await weiche<{ id: string; ownerUserId: string }>("account", "create", ...wish);
  const record = (model: string) => {
    const attempt = {
      ...{ requestId: asId<never>(uuidv7(systemClock)), attempt: 1, model: asId<never>(model), tokensMax: 8_192 },
      ...{ accountId: asId<never>(id), userId: asId<never>(ownerUserId), keyId: asId<never>(ownerUserId) },
      factor: millicredits(500n),
    };
    return {
      ...{ request_id: attempt.requestId, attempt: 1, model, factor_millicredits: "500", tokens_max: "8192" },
      ...{ account_id: id, user_id: ownerUserId, key_id: ownerUserId },
      grant: Buffer.from(grants.sign(asId("gpu-1"), attempt), "base64url"),
      ...{ prompt_tokens: 100, completion_tokens: 900, duration_ms: 1 },
      ...{ source: "USAGE_SOURCE_ENGINE", outcome: "REQUEST_OUTCOME_FINISHED" },
    };
  };
  using agent = new LinkClient(Number(router.listen.nodes.split(":").at(-1)));
  agent.say(helloOf("gpu-1", bootId(1), ["vl-embedding-2b"]));
  await agent.welcomed;
  agent.say({ usage_batch: { batch_id: 1, records: [record("vl-embedding-2b"), record("small-24b")] } });
  await expect.poll(() => agent.received.some((message) => message["usage_ack"])).toBe(true);
  const { rows } = await weiche<{ rows: { model: string }[] }>("usage", "--account", id, "--by", "model");
  expect(rows.toSorted((a, b) => a.model.localeCompare(b.model))).toMatchObject([
    { model: "small-24b", promptTokens: 100, completionTokens: 900, credits: "500.000" },
    { model: "vl-embedding-2b", promptTokens: 100, completionTokens: 0, credits: "50.000" },
  ]);
});
