/**
 * Tests updates of routers and agents one after the other. Each works with an earlier version of the other, and routers of
 * both versions share one database.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, askStream, type Client } from "../cluster/api-client.ts";
import { Cluster, until, type ClusterOptions } from "../cluster/cluster.ts";
import { RouterGroup } from "../cluster/router-group.ts";
import { simNodes } from "../cluster/sim-node.ts";
import { checkOut, type CommittedCode } from "../cluster/committed-code.ts";

/**
 * The earliest version that current routers and agents work with, because its data connections use frames. A release
 * that drops it names a later version here and in the changelog.
 */
const earlier = "d64cb94";
let before: CommittedCode;

beforeAll(async () => {
  before = await checkOut(earlier);
}, 600_000);
afterAll(() => before[Symbol.dispose]());

const options: ClusterOptions = simNodes(["model-a"]);

interface Totals {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/**
 * Sends 20 requests for bodies and 20 for streams from each client, all at once. Each client also leaves one more
 * stream early. Returns the number of billed requests.
 */
async function serve(clients: readonly Client[], usage: () => Promise<Totals>): Promise<number> {
  const seen = await Promise.all(
    Array.from({ length: 20 * clients.length }, (_each, index) => {
      const client = clients[index % clients.length]!;
      const text = `sim:tokens=${index + 1} go on`;
      if (Math.floor(index / clients.length) % 2 === 0) return askStream({ ...client, model: "model-a", text });
      return ask(client, "/chat/completions", { model: "model-a", messages: [{ role: "user", content: text }] });
    }),
  );
  expect(seen.map(({ ending }) => ending)).toEqual(seen.map(() => "whole"));
  expect(seen.map(({ usage: used }) => used!.completion_tokens)).toEqual(seen.map((_one, index) => index + 1));
  const gone = await Promise.all(clients.map(leaveEarly));
  expect(gone).toEqual(clients.map(() => "left"));

  const requests = seen.length + clients.length;
  await until("all usage to be committed", async () => (await usage()).requests === requests);
  const { promptTokens, completionTokens } = await usage();
  const received = seen.reduce((sum, one) => sum + one.usage!.completion_tokens!, 0);
  expect(promptTokens).toBeGreaterThan(seen.reduce((sum, one) => sum + one.usage!.prompt_tokens, 0));
  // Streams that were left are billed for the tokens generated until then.
  expect(completionTokens).toBeGreaterThanOrEqual(received + 5 * clients.length);
  expect(completionTokens).toBeLessThan(received + 2000 * clients.length);
  return requests;
}

async function leaveEarly(client: Client): Promise<string> {
  const left = new AbortController();
  const onPiece = (pieces: number) => pieces === 5 && left.abort();
  const text = "sim:tokens=2000";
  return (await askStream({ ...client, model: "model-a", text, signal: left.signal, onPiece })).ending;
}

test.each([
  ["a router of an earlier version serves with the agent of this one", () => ({ router: before.root })],
  ["an agent of an earlier version serves with the router of this one", () => ({ agents: before.root })],
])("%s: bodies and streams are whole, and usage is what the clients received [G5]", async (_, code) => {
  await using cluster = await Cluster.start({ ...options, code: code() });
  const { accountId, apiKey } = await cluster.account();
  const usage = async () => ((await cluster.weiche("usage", "--account", accountId)) as { totals: Totals }).totals;
  expect(await serve([{ baseUrl: cluster.baseUrl, apiKey }], usage)).toBe(21);
});

test.each([
  ["joined by a router of this version, with an agent of the earlier version", "earlier", "earlier"],
  ["joined by a router of this version, with an agent of this version", "earlier", "this"],
  ["that joins a router of this version, with an agent of the earlier version", "this", "earlier"],
  ["that joins a router of this version, with an agent of this version", "this", "this"],
])(
  "a router of an earlier version %s: answers of both are whole, and both report the same usage [G5]",
  async (_, first, agent) => {
    const code = {
      ...(first === "earlier" && { router: before.root }),
      ...(agent === "earlier" && { agents: before.root }),
    };
    const second = first === "earlier" ? {} : { code: before.root };
    await using group = await RouterGroup.start(2, { ...options, code }, second);
    const { accountId, apiKey } = await group.cluster.account();
    const usage = async (index: number) =>
      ((await group.weiche(index, "usage", "--account", accountId)) as { totals: Totals }).totals;
    const clients = group.routers.map(({ listen }) => ({ baseUrl: `http://${listen["api"]}/v1`, apiKey }));
    expect(await serve(clients, () => usage(0))).toBe(42);
    expect(await usage(1)).toEqual(await usage(0));
  },
);
