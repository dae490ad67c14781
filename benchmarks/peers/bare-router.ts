/** The router without keys, limits and metering, above a real agent; no TLS, so compare it with `weiche-plain`. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { RunningProgram, until } from "../cluster/cluster.ts";
import { catalogueOf } from "../cluster/sim-node.ts";
import type { Program } from "./program.ts";

export const bareRouter: Program = {
  name: "bare-router",
  what: "router without keys, limits, database and metering, above a real agent, no TLS: what these cost is the difference",
  scenarios: ["json-64", "stream-64x10", "stream-256x20"],
  missing: () => undefined,
  async start({ port: engine, model, directory: scratch }) {
    await using opened = new AsyncDisposableStack();
    const directory = mkdtempSync(join(scratch, "bare-router-"));
    const catalogue = catalogueOf(model).map((entry) => ({ ...entry, contextTokens: 1_000_000 }));
    writeFileSync(join(directory, "catalogue.yaml"), stringify(catalogue));
    const file = "benchmarks/peers/servers/bare-router.ts";
    const router = await RunningProgram.start(file, [join(directory, "catalogue.yaml")], {});
    opened.defer(async () => void (await router.stop()));
    const url = `http://127.0.0.1:${engine}`;
    const served = { model, dialect: "vllm", launcher: "external", url, maxConcurrent: 20_000 };
    const agentFile = join(directory, "agent.yaml");
    const routers = [router.listen["nodes"]];
    writeFileSync(agentFile, stringify({ node: "node-1", routers, slots: [{ name: "a", engines: [served] }] }));
    mkdirSync(join(directory, "data"));
    const agent = await RunningProgram.start("node-agent/src/main.ts", [], {
      ...{ WEICHE_DATA_DIR: join(directory, "data"), WEICHE_AGENT_CONFIG: agentFile },
      WEICHE_AGENT_OPS_LISTEN: "127.0.0.1:0",
    });
    opened.defer(async () => void (await agent.stop()));
    const port = Number(router.listen["api"]!.split(":").at(-1));
    await until("the bare router to reach its agent", () => answers(port, model));
    const closing = opened.move();
    return {
      ...{ port, processes: { router: router.pid, agent: agent.pid }, version: process.version },
      headers: "authorization: Bearer any\r\n",
      [Symbol.asyncDispose]: () => closing.disposeAsync(),
    };
  },
};

async function answers(port: number, model: string): Promise<boolean> {
  const messages = [{ role: "user", content: "load:tokens=1" }];
  const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer any", "content-type": "application/json" },
    body: JSON.stringify({ model, messages }),
  });
  await answer.arrayBuffer();
  return answer.status === 200;
}
