/**
 * Tests two accounts that send the same text through a real agent. Neither counts nor work reveal to one account what
 * the other has sent.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LoneAgent, type LoneAnswer } from "../cluster/lone-agent.ts";
import { SimNodeEngine, simEngine } from "../cluster/sim-node.ts";

const root = join(import.meta.dirname, "../..");
const text = "sim:tokens=3 The merger with Contoso is to be announced on the third of May, for 12 euros a share.";
let agent: LoneAgent;

beforeAll(async () => {
  // With one slot, the engine drops its cache for each different prompt.
  const options = { dialect: "llama-server", "max-running": 1 };
  const llamaServer = (model: string, more: object = {}) => ({
    name: model,
    engines: [{ ...simEngine(model, options), dialect: "llama-server", sleep: undefined, ...more }],
  });
  const embedded = (model: string, more: object = {}) => {
    const command = ["node", join(root, "node-agent/embedded-engine/src/main.ts"), "--port", "{port}"];
    const flags = ["--model", join(root, "node-agent/models/weiche-tiny.gguf"), "--alias", model, "--parallel", "2"];
    return {
      name: model,
      engines: [{ model, dialect: "openai", maxConcurrent: 2, command: [...command, ...flags], ...more }],
    };
  };
  const shared = { cachePrompts: "shared" };
  const slots = [
    llamaServer("llama"),
    llamaServer("llama-shared", { ...shared, env: { LLAMA_ARG_CACHE_RAM: "8192" } }),
    embedded("tiny"),
    embedded("tiny-shared", shared),
  ];
  agent = await LoneAgent.start({ slots, models: slots.map(({ name }) => name) });
});
afterAll(() => agent[Symbol.asyncDispose]());

/** Sends the same text from the accounts in turn. */
async function send(model: string, ...accounts: readonly string[]): Promise<LoneAnswer[]> {
  const answers: LoneAnswer[] = [];
  for (const account of accounts) answers.push(await agent.chat(model, text, { account }));
  expect(answers.map(({ status, ending }) => `${status} ${ending}`)).toEqual(accounts.map(() => "200 complete"));
  return answers;
}

function usageOf({ body }: LoneAnswer): { prompt_tokens: number; prompt_tokens_details?: { cached_tokens: number } } {
  return (JSON.parse(body.split("\n\n").at(-3)!.slice("data: ".length)) as { usage: ReturnType<typeof usageOf> }).usage;
}

const shown = (answers: readonly LoneAnswer[]) =>
  answers.map((answer) => usageOf(answer).prompt_tokens_details?.cached_tokens);

const engineOf = (model: string) => new SimNodeEngine(agent.directory, model, model);

test("llama-server reads each prompt anew, restores none from its cache, and no client sees cached tokens [D10]", async () => {
  const answers = await send("llama", "a", "b");
  await agent.chat("llama", "Something else. ".repeat(20), { account: "c" });
  answers.push(...(await send("llama", "b")));
  expect(shown(answers)).toEqual([undefined, undefined, undefined]);
  expect(new Set(answers.map((answer) => usageOf(answer).prompt_tokens)).size).toBe(1);
  const requests = (await engineOf("llama").requests()).slice(-4);
  expect(requests.map(({ cached_tokens, restored }) => [cached_tokens, restored])).toEqual(Array(4).fill([0, false]));
});

test("a shared llama-server cache reveals to one account that another has sent the same text [D10]", async () => {
  const [first, second] = await send("llama-shared", "a", "b");
  expect(shown([first!])).toEqual([0]);
  expect(shown([second!])).toEqual([usageOf(second!).prompt_tokens - 1]);
});

/** Returns the number of prompt tokens that the embedded engine has found in its contexts. */
async function hits(model: string): Promise<number> {
  const metrics = await (await fetch(`${engineOf(model).origin}/metrics`)).text();
  return Number(/^vllm:prefix_cache_hits_total\{.*\} (\d+)$/m.exec(metrics)![1]);
}

test.each([
  ["tiny", "only prompts of the same account", [false, false, true]],
  ["tiny-shared", "prompts of all accounts", [false, true, true]],
])("the embedded engine of %s reuses %s [D10]", async (model, _whose, found) => {
  const seen: boolean[] = [];
  const answers: LoneAnswer[] = [];
  for (const account of ["a", "b", "a"]) {
    const before = seen.length === 0 ? 0 : await hits(model);
    answers.push(...(await send(model, account)));
    seen.push((await hits(model)) > before + 10);
  }
  expect(seen).toEqual(found);
  const isShared = model === "tiny-shared";
  expect(shown(answers).map((tokens) => tokens !== undefined)).toEqual(Array(3).fill(isShared));
});
