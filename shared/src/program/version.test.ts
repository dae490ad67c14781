import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { systemClock } from "../time/clock.ts";
import { openOpsServer } from "./ops-server.ts";
import { registerBuildInfo, version } from "./version.ts";

test("the version from the project's package.json is in /healthz and in the metrics", async () => {
  const project = JSON.parse(readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8")) as object;
  expect(project).toMatchObject({ version });
  const registry = new Registry();
  registerBuildInfo(registry);
  await using server = await openOpsServer({
    ...{ config: { listen: { host: "127.0.0.1", port: 0 } }, metrics: registry, ready: () => true, clock: systemClock },
    events: { tlsReloaded() {}, tlsReloadFailed() {} },
  });
  const ask = async (path: string) =>
    await (await fetch(`http://127.0.0.1:${server.address.port}${path}`, { headers: { connection: "close" } })).text();
  expect(await ask("/healthz")).toBe(`ok ${version}\n`);
  expect(await ask("/metrics")).toContain(
    `weiche_build_info{version="${version}",nodejs="${process.versions.node}"} 1\n`,
  );
});
