/**
 * Tests a real llama-server whose slots share one context. The agent sends it only requests that fit at the same time,
 * so that long answers do not break each other off. The program is in PATH or named by `WEICHE_LLAMA_SERVER`. Without
 * one, the test is skipped.
 */
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Cluster } from "../cluster/cluster.ts";
import { catalogueOf } from "../cluster/sim-node.ts";
import { findProgram } from "../real-engines/find-program.ts";

const program = findProgram("llama-server", "WEICHE_LLAMA_SERVER");
const contextTokens = 256;

/** `used` is the number of the four slots that can be full at the same time. */
const engines = [
  { model: "no-slots-named", used: 1, flags: ["-c", `${contextTokens}`] },
  { model: "unified", used: 1, flags: ["-np", "4", "-kvu", "-c", `${contextTokens}`] },
  {
    ...{ model: "unified-with-limit", used: 2 },
    flags: ["-np", "4", "-kvu", "-c", `${2 * contextTokens}`, "--kv-unified-per-slot", `${contextTokens}`],
  },
];

describe.skipIf(program === undefined)("a llama-server whose slots share one context", () => {
  let cluster: Cluster;
  let client: OpenAI;
  beforeAll(async () => {
    const slots = engines.map(({ model, flags }) => ({ name: model, engines: [entryOf(model, flags)] }));
    const agents = { "node-1": { slots } };
    cluster = await Cluster.start({ catalogue: catalogueOf(...engines.map(({ model }) => model)), agents });
    const { apiKey } = await cluster.account();
    client = new OpenAI({ apiKey, baseURL: cluster.baseUrl, maxRetries: 0 });
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  test.each(engines)("$model: four long concurrent answers all end well", async ({ model, used }) => {
    const messages = [{ role: "user" as const, content: "Count from 1 to 100." }];
    const ask = () => client.chat.completions.create({ model, messages, temperature: 0 });
    for (const { choices, usage } of await Promise.all([ask(), ask(), ask(), ask()])) {
      expect(choices[0]!.finish_reason, "each answer reaches the end of the context").toBe("length");
      expect(usage!.total_tokens).toBeGreaterThan(contextTokens - 5);
    }
    const said = cluster.agents
      .get("node-1")!
      .output.find((line) => line.includes("share one") && line.includes(model));
    expect(JSON.parse(said!)).toMatchObject({ slot: model, slots: 4, used });
  });
});

function entryOf(model: string, flags: readonly string[]): object {
  const weights = join(import.meta.dirname, "../../node-agent/models/weiche-tiny.gguf");
  const command = [program, "-m", weights, "--alias", model, "--host", "127.0.0.1", "--port", "{port}", "-t", "1"];
  return { model, dialect: "llama-server", command: [...command, ...flags, "--metrics", "--sse-ping-interval", "1"] };
}
