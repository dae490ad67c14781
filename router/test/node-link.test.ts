import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { systemClock } from "@weiche/shared/clock.ts";
import { asId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import type { DesiredState } from "../src/nodes/desired-state.ts";
import type { NodeLinkEvents } from "../src/nodes/node-link-session.ts";
import { openNodeLink, type NodeLink } from "../src/nodes/node-link.ts";
import { NodeRegistry } from "../src/nodes/registry.ts";
import { bootId, helloOf, LinkClient } from "./link-client.ts";

const node = asId<NodeId>("gpu-1");
const rules: ModelRules = {
  id: asId<ModelId>("m"),
  category: "embeddings",
  contextTokens: 8192,
  reasoning: { mode: "default-on", efforts: ["low", "high"], default: "high", templateKwargsAccepted: true },
  toolsEnforced: true,
  images: { max: 4, formats: ["png"] },
  embeddings: {
    dimensions: { min: 64, max: 2048, default: 1024 },
    inputTokens: 8192,
    instruction: { default: "Represent.", template: "{instruction} {input}" },
  },
};
const wireRecord = {
  request_id: "0190f3c5-7a00-7000-8000-000000000001",
  attempt: 1,
  account_id: "a",
  user_id: "u",
  key_id: "k",
  model: "m",
  factor_millicredits: "1500",
  prompt_tokens: 7,
  completion_tokens: 11,
  reasoning_tokens: 3,
  source: "USAGE_SOURCE_ENGINE",
  outcome: "REQUEST_OUTCOME_FINISHED",
  duration_ms: 1200,
};

let catalogue: ModelRules[];
let desired: DesiredState | undefined;
let recorded: (readonly [NodeId, readonly UsageRecord[]])[];
/** Settled by the test; undefined: the ledger commits at once. */
let commit: PromiseWithResolvers<void> | undefined;
let told: unknown[][];
let boots: unknown[][];
let registry: NodeRegistry;
let link: NodeLink;
const clients: LinkClient[] = [];

beforeEach(async () => {
  catalogue = [rules];
  desired = undefined;
  commit = undefined;
  [recorded, told, boots] = [[], [], []];
  registry = new NodeRegistry();
  const tell =
    (event: string) =>
    (...args: unknown[]) =>
      void told.push([event, ...args]);
  const events: NodeLinkEvents = {
    nodeLinked: tell("linked"),
    nodeUnlinked: tell("unlinked"),
    nodeRefused: tell("refused"),
    reportUnreadable: tell("unreadable"),
    usageRejected: tell("rejected"),
    usageNotRecorded: tell("not recorded"),
  };
  link = await openNodeLink({
    listen: { host: "127.0.0.1", port: 0 },
    routerId: "router-1",
    dataAddress: "router1.example:7444",
    clock: systemClock,
    registry,
    ledger: {
      async record(from, records) {
        recorded.push([from, records]);
        await commit?.promise;
      },
    },
    rulesOf: (models) => catalogue.filter(({ id }) => models.includes(id)),
    desiredStateOf: () => desired,
    onBoot: (...args) => boots.push(args),
    events,
  });
});

afterEach(async () => {
  for (const client of clients.splice(0)) client[Symbol.dispose]();
  await link.close(1_000);
});

function dial(): LinkClient {
  const client = new LinkClient(link.address.port);
  clients.push(client);
  return client;
}

async function linked(boot = 1): Promise<LinkClient> {
  const client = dial();
  client.say(helloOf(node, bootId(boot)));
  await expect.poll(() => client.received.length).toBe(1);
  return client;
}

const view = () => registry.view(systemClock.monotonicMs())[0]!;

test("hello is answered with who the router is, where data goes, the rules of the node's models and what is wanted", async () => {
  catalogue.push({ ...rules, id: asId<ModelId>("another") });
  desired = { generation: 7n, maintenance: true, prewarmModels: [rules.id] };
  const client = await linked();
  expect(client.received).toMatchObject([
    {
      message: "welcome",
      welcome: {
        router_id: "router-1",
        data_address: "router1.example:7444",
        models: [
          {
            id: "m",
            category: "MODEL_CATEGORY_EMBEDDINGS",
            context_tokens: 8192,
            reasoning: { mode: "REASONING_MODE_DEFAULT_ON", efforts: ["low", "high"], default_effort: "high" },
            tools_enforced: true,
            images: { max: 4, formats: ["png"] },
            embeddings: { dimensions_min: 64, instruction_template: "{instruction} {input}" },
          },
        ],
        desired_state: { generation: "7", maintenance: true, prewarm_models: ["m"] },
      },
    },
  ]);
  expect(told).toEqual([["linked", node, bootId(1), "0.1.0"]]);
  expect(boots).toEqual([[node, bootId(1)]]);
});

test("a report becomes the live picture; absent stays absent, and a slot in an unknown state is left out", async () => {
  const client = await linked();
  const slots = [
    {
      name: "s",
      state: "SLOT_STATE_DRAINING_OPEN",
      active_model: "m",
      next_model: "n",
      running: 3,
      running_of_router: 2,
      waiters: [
        { model: "n", waiting: 4 },
        { model: "o", waiting: 0 },
      ],
      closes_in_ms: 800,
      state_age_ms: 9_200,
      engine: { kv_cache_use: 0.5 },
    },
    { name: "t", state: 99 },
  ];
  const host = { memory_total_bytes: "1000", gpus: [{ index: 0, memory_used_bytes: "5" }] };
  client.say({ load_report: { sequence: 1, slots, host, maintenance: false, admitting: true } });
  await expect.poll(() => view().slots.length).toBe(1);
  expect(view()).toMatchObject({ admitting: true, maintenance: false });
  expect(view().slots[0]).toMatchObject({
    name: "s",
    kind: "draining-open",
    active: "m",
    next: "n",
    running: 3,
    runningOfRouter: 2,
    waiting: 4,
    waitingByModel: new Map([["n", 4]]),
    closesInMs: 800,
    oldestRunningMs: undefined,
    maxConcurrent: undefined,
  });
  const [detail] = registry.details(0);
  expect(detail!.report).toMatchObject({
    host: { memoryTotalBytes: 1000, cpuUse: undefined, gpus: [{ index: 0, memoryUsedBytes: 5 }] },
    slots: [{ engine: { kvCacheUse: 0.5 } }],
  });
  expect(told).toContainEqual(["unreadable", node, 1]);
});

describe("usage", () => {
  const batch = (id: number, ...records: object[]) => ({ usage_batch: { batch_id: id, records } });
  const acks = (client: LinkClient) =>
    client.received.flatMap(({ usage_ack }) => (usage_ack ? [(usage_ack as { batch_id: string }).batch_id] : []));

  test("is acknowledged once it is committed, and not before", async () => {
    commit = Promise.withResolvers();
    const client = await linked();
    client.say(batch(1, wireRecord));
    await expect.poll(() => recorded.length).toBe(1);
    client.say(batch(2));
    await expect.poll(() => acks(client)).toEqual(["2"]);
    commit.resolve();
    await expect.poll(() => acks(client)).toEqual(["2", "1"]);
    expect(recorded).toEqual([
      [
        node,
        [
          {
            requestId: wireRecord.request_id,
            attempt: 1,
            accountId: "a",
            userId: "u",
            keyId: "k",
            model: "m",
            factor: 1500n,
            promptTokens: 7,
            completionTokens: 11,
            reasoningTokens: 3,
            source: "engine",
            outcome: "finished",
            durationMs: 1200,
          },
        ],
      ],
    ]);
  });

  test("that the database refuses is not acknowledged", async () => {
    commit = Promise.withResolvers();
    const client = await linked();
    client.say(batch(1, wireRecord));
    await expect.poll(() => recorded.length).toBe(1);
    commit.reject(new Error("no database"));
    await expect.poll(() => told.at(-1)).toEqual(["not recorded", node, 1, new Error("no database")]);
    client.say(batch(2));
    await expect.poll(() => acks(client)).toEqual(["2"]);
  });

  test.each([
    ["source", { source: 9 }],
    ["outcome", { outcome: "REQUEST_OUTCOME_UNSPECIFIED" }],
    ["request_id", { request_id: "42" }],
    ["attempt", { attempt: 0 }],
    ["id", { account_id: "" }],
    ["model", { model: "a\nb" }],
    ["tokens", { prompt_tokens: 4_000_000_000 }],
    ["factor", { factor_millicredits: "18446744073709551615" }],
    ["tokens", { outcome: "REQUEST_OUTCOME_BROKEN" }],
  ])("with an impossible %s is shown to a person and does not hold up the rest", async (what, wrong) => {
    const client = await linked();
    client.say(batch(1, { ...wireRecord, ...wrong }, wireRecord));
    await expect.poll(() => acks(client)).toEqual(["1"]);
    expect(recorded[0]![1]).toHaveLength(1);
    const [, from, rejected] = told.find(([event]) => event === "rejected")! as [string, NodeId, { reason: string }];
    expect(from).toBe(node);
    expect(rejected.reason).toContain(what);
    expect(rejected).toMatchObject({ record: { promptTokens: expect.any(Number) as number } });
  });

  test("of one node waits for the database in a bounded number of batches", async () => {
    commit = Promise.withResolvers();
    const client = await linked();
    for (let id = 1; id <= 40; id++) client.say(batch(id, wireRecord));
    client.say({ load_report: { sequence: 1, slots: [{ name: "s", state: "SLOT_STATE_EMPTY" }] } });
    await expect.poll(() => view().slots.length).toBe(1);
    expect(recorded).toHaveLength(16);
    commit.resolve();
    await expect.poll(() => acks(client).length).toBe(16);
    client.say(batch(17, wireRecord));
    await expect.poll(() => acks(client).at(-1)).toBe("17");
  });
});

describe("a client that does not keep to the protocol gets a clean status:", () => {
  test.each<[string, object[], number]>([
    ["a report before hello", [{ load_report: {} }], status.INVALID_ARGUMENT],
    ["an empty message", [{}], status.INVALID_ARGUMENT],
    ["a malformed name", [helloOf("a b", bootId(1))], status.INVALID_ARGUMENT],
    ["a boot id that tells no time", [helloOf(node, "1")], status.INVALID_ARGUMENT],
    ["a malformed model", [helloOf(node, bootId(1), [""])], status.INVALID_ARGUMENT],
    ["two hellos", [helloOf(node, bootId(1)), helloOf(node, bootId(1))], status.INVALID_ARGUMENT],
  ])("%s", async (_what, messages, code) => {
    const client = dial();
    for (const message of messages) client.say(message as Record<string, unknown>);
    expect((await client.ended).code).toBe(code);
    expect(told).toContainEqual(["refused", "invalid", expect.any(String)]);
    await linked();
  });

  test("no hello at all", async () => {
    const client = dial();
    expect((await client.ended).code).toBe(status.DEADLINE_EXCEEDED);
  });

  test("bytes that are no message", async () => {
    const client = dial();
    const { call } = client;
    const serialize = (
      call as unknown as { call: { sendMessageWithContext: (context: object, message: Buffer) => void } }
    ).call;
    serialize.sendMessageWithContext({}, Buffer.from([0x0a, 0xff, 0xff, 0xff]));
    expect((await client.ended).code).not.toBe(status.OK);
    await linked();
  });
});

test("of two links of a node the later start of the agent has the word, whichever comes last", async () => {
  const first = await linked(1);
  const second = await linked(2);
  expect((await first.ended).code).toBe(status.ABORTED);
  const late = dial();
  late.say(helloOf(node, bootId(1)));
  expect((await late.ended).code).toBe(status.ALREADY_EXISTS);
  const again = await linked(2);
  expect((await second.ended).code).toBe(status.ABORTED);
  again.say({ load_report: { slots: [{ name: "s", state: "SLOT_STATE_EMPTY" }] } });
  await expect.poll(() => view().slots.length).toBe(1);
  expect(told.filter(([event]) => event === "unlinked")).toEqual([
    ["unlinked", node, "replaced"],
    ["unlinked", node, "replaced"],
  ]);
});

test("a link that is reset makes its node unreachable at once", async () => {
  registry.sessionUp(node);
  const client = await linked();
  client.say({ load_report: { slots: [], admitting: true } });
  await expect.poll(() => view().reachable).toBe(true);
  client.call.cancel();
  await expect.poll(() => view().reachable, { timeout: 1_000 }).toBe(false);
  expect(told.at(-1)).toEqual(["unlinked", node, "ended"]);
});

test("nodes whose models a changed catalogue concerns are told, and a changed wish reaches its node", async () => {
  const client = await linked();
  catalogue = [{ ...rules }, { ...rules, id: asId<ModelId>("another") }];
  link.rulesChanged();
  catalogue = [{ ...rules, contextTokens: 4096 }];
  link.rulesChanged();
  desired = { generation: 8n, maintenance: false, prewarmModels: [] };
  link.desiredStateChanged(node);
  await expect.poll(() => client.received.length).toBe(3);
  expect(client.received.slice(1)).toMatchObject([
    { model_rules_changed: { models: [{ id: "m", context_tokens: 4096 }] } },
    { desired_state: { generation: "8" } },
  ]);
});

test("a router that stops says goodbye, still acknowledges, takes no new links, and then ends them", async () => {
  const client = await linked();
  link.goodbye();
  client.say({ usage_batch: { batch_id: 5, records: [] } });
  await expect.poll(() => client.received.slice(1)).toMatchObject([{ goodbye: {} }, { usage_ack: { batch_id: "5" } }]);
  expect((await dial().ended).code).toBe(status.UNAVAILABLE);
  const before = performance.now();
  await link.close(10_000);
  expect(performance.now() - before).toBeLessThan(5_000);
  expect((await client.ended).code).toBe(status.OK);
});

describe("other tools find their way", () => {
  const buf = join(import.meta.dirname, "../../node_modules/.bin/buf");
  const curl = async (...args: string[]) =>
    (await promisify(execFile)(buf, ["curl", "--protocol", "grpc", "--http2-prior-knowledge", ...args])).stdout;
  const url = (path = "") => `http://127.0.0.1:${link.address.port}${path}`;

  test("reflection lists every method", async () => {
    const methods = await curl("--list-methods", url());
    expect(methods).toContain("weiche.node.v1.NodeControlService/Link");
    expect(methods).toContain("grpc.health.v1.Health/Check");
  });

  test("a link can be spoken to by reflection alone", async () => {
    const messages = [
      { hello: { node, bootId: bootId(1), slots: [{ name: "s", models: ["m"] }] } },
      { usageBatch: { batchId: 3 } },
    ];
    const answers = await curl(
      "-d",
      messages.map((message) => JSON.stringify(message)).join("\n"),
      url("/weiche.node.v1.NodeControlService/Link"),
    );
    expect(answers).toContain('"routerId": "router-1"');
    expect(answers).toMatch(/"usageAck"/);
  });

  test("health says whether links are taken", async () => {
    expect(await curl("-d", "{}", url("/grpc.health.v1.Health/Check"))).toContain('"SERVING"');
    link.goodbye();
    expect(await curl("-d", "{}", url("/grpc.health.v1.Health/Check"))).toContain('"NOT_SERVING"');
  });

  test("the health service's descriptors are those of the package in use", async () => {
    const proto = join(import.meta.dirname, "../../node_modules/grpc-health-check/proto");
    const args = ["build", proto, "-o", "-", "--as-file-descriptor-set", "--exclude-source-info"];
    const { stdout } = await promisify(execFile)(buf, args, { encoding: "buffer" });
    expect(stdout.equals(readFileSync(join(import.meta.dirname, "../src/nodes/health.binpb")))).toBe(true);
  });
});
