/** The router without keys, limits and metering, with a real agent. It has no TLS, so compare it with `weiche-plain`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { ask } from "../../e2e/cluster/api-client.ts";
import { RunningProgram, startAgent, until } from "../../e2e/cluster/cluster.ts";
import type { Program } from "./program.ts";
import { engineEntry, loadCatalogue } from "./weiche.ts";

export const bareRouter: Program = {
  name: "bare-router",
  what: "router without keys, limits, database and metering, with a real agent, no TLS: the difference is the cost of these features",
  scenarios: ["json-64", "stream-64x10", "stream-256x20"],
  missing: () => undefined,
  async start(upstream) {
    await using opened = new AsyncDisposableStack();
    const catalogue = join(upstream.directory, "catalogue.yaml");
    writeFileSync(catalogue, stringify(loadCatalogue(upstream.model)));
    const router = await RunningProgram.start("benchmarks/peers/servers/bare-router.ts", [catalogue], {});
    opened.defer(async () => void (await router.stop()));
    const slots = [{ name: "a", engines: [engineEntry(upstream)] }];
    const config = { node: "node-1", routers: [router.listen["nodes"]], slots };
    const agent = await startAgent(join(upstream.directory, "agent"), config);
    opened.defer(async () => void (await agent.stop()));
    const baseUrl = `http://${router.listen["api"]}/v1`;
    const body = { model: upstream.model, messages: [{ role: "user", content: "load:tokens=1" }] };
    const answers = async () => (await ask({ baseUrl, apiKey: "any" }, "/chat/completions", body)).ending === "whole";
    await until("the bare router to reach its agent", answers);
    const closing = opened.move();
    return {
      ...{ port: Number(new URL(baseUrl).port), processes: { router: router.pid, agent: agent.pid } },
      ...{ version: process.version, headers: "authorization: Bearer any\r\n" },
      [Symbol.asyncDispose]: () => closing.disposeAsync(),
    };
  },
};
