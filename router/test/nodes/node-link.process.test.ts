import { once } from "node:events";
import { connect } from "node:http2";
import { status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { version } from "@weiche/shared/program/version.ts";
import { asId, type ModelId, type RequestId } from "@weiche/shared/ids.ts";
import { bootId, helloOf } from "./link-client.ts";
import { node, NodeLinkRig, rules } from "./node-link-rig.ts";
import { SlotState } from "../../src/nodes/node-view.ts";

let rig: NodeLinkRig;
beforeEach(async () => {
  rig = await NodeLinkRig.open();
});
afterEach(async () => {
  await rig[Symbol.asyncDispose]();
});

test("hello is answered with the router's identity, the address for data, the rules of the node's models and the operators' wishes", async () => {
  rig.catalogue.push({ ...rules, id: asId<ModelId>("another") });
  rig.desired = { generation: 7n, maintenance: true, prewarmModels: [rules.id], acknowledgedFailure: 0n };
  const client = await rig.linked();
  expect(client.received).toMatchObject([
    {
      message: "welcome",
      welcome: {
        router_id: "router-1",
        data_address: "router1.example:7444",
        router_version: version,
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
  expect(rig.told).toEqual([["linked", node, bootId(1), "0.1.0"]]);
  expect(rig.boots).toEqual([[node, bootId(1)]]);
});

test("an agent gets the list of all routers in its welcome, and again when it changes", async () => {
  const routers = [{ routerId: "router-1", address: "router1.example:7443" }];
  rig.routers = routers;
  const client = await rig.linked();
  const known = [{ router_id: "router-1", address: "router1.example:7443" }];
  expect(client.received).toMatchObject([{ welcome: { routers: { routers: known } } }]);
  rig.routers = [...routers, { routerId: "router-2", address: "10.0.0.2:7443" }];
  rig.link.routersChanged();
  await expect.poll(() => client.received.length).toBe(2);
  const more = [...known, { router_id: "router-2", address: "10.0.0.2:7443" }];
  expect(client.received[1]).toMatchObject({ routers_changed: { routers: more } });
});

test("a connection without a link is closed after a while, one with a link stays", async () => {
  await using impatient = await NodeLinkRig.open(undefined, { connectionUnusedMsMax: 50 });
  const client = await impatient.linked();
  const unused = connect(`http://127.0.0.1:${impatient.link.address.port}`);
  await once(unused, "close");
  const before = client.heartbeats;
  await expect.poll(() => client.heartbeats, { timeout: 5_000 }).toBeGreaterThan(before);
});

test("a linked agent gets a heartbeat each second", async () => {
  const client = await rig.linked();
  await expect.poll(() => client.heartbeats, { timeout: 5_000 }).toBeGreaterThan(1);
});

test("a report becomes the live picture; absent stays absent, and a slot in an unknown state is left out", async () => {
  const client = await rig.linked();
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
  await expect.poll(() => rig.view().slots.length).toBe(1);
  expect(rig.view()).toMatchObject({ admitting: true, maintenance: false });
  expect(rig.view().slots[0]).toMatchObject({
    name: "s",
    state: SlotState.DRAINING_OPEN,
    activeModel: "m",
    nextModel: "n",
    running: 3,
    runningOfRouter: 2,
    waiting: 4,
    waiters: [{ model: "n", waiting: 4 }],
    closesInMs: 800,
    oldestRunningMs: undefined,
    maxConcurrent: undefined,
  });
  const [detail] = rig.registry.details(0);
  expect(detail!.report).toMatchObject({
    host: { memoryTotalBytes: 1000n, cpuUse: undefined, gpus: [{ index: 0, memoryUsedBytes: 5n }] },
    slots: [{ engine: { kvCacheUse: 0.5 } }],
  });
  expect(rig.told).toContainEqual(["unreadable", node, 1]);
});

function emptyRecords(count: number): object {
  return { usage_batch: { batch_id: 1, records: Array.from({ length: count }, () => ({})) } };
}

describe("a client that does not keep to the protocol gets a clean status:", () => {
  test.each<[string, object[], number]>([
    ["a report before hello", [{ load_report: {} }], status.INVALID_ARGUMENT],
    ["an empty message", [{}], status.INVALID_ARGUMENT],
    ["a malformed name", [helloOf("a b", bootId(1))], status.INVALID_ARGUMENT],
    ["a boot id without a time", [helloOf(node, "1")], status.INVALID_ARGUMENT],
    ["a malformed model", [helloOf(node, bootId(1), [""])], status.INVALID_ARGUMENT],
    ["two hellos", [helloOf(node, bootId(1)), helloOf(node, bootId(1))], status.INVALID_ARGUMENT],
    ["more records than a batch may have", [helloOf(node, bootId(1)), emptyRecords(1_001)], status.INVALID_ARGUMENT],
  ])("%s", async (_what, messages, code) => {
    const client = rig.dial();
    for (const message of messages) client.say(message as Record<string, unknown>);
    expect((await client.ended).code).toBe(code);
    expect(rig.told).toContainEqual(["refused", "invalid", expect.any(String), expect.any(String)]);
    await rig.linked();
  });

  test("no hello at all", async () => {
    const client = rig.dial();
    expect((await client.ended).code).toBe(status.DEADLINE_EXCEEDED);
  });

  test("bytes that are no message", async () => {
    const client = rig.dial();
    client.say(Buffer.from([0x0a, 0xff, 0xff, 0xff]));
    expect(await client.ended).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "the message is not well-formed",
    });
    await rig.linked();
  });

  test.each([
    ["usage_batch.records has more than 1000 elements", 0x1a, 0x12],
    ["load_report.slots has more than 64 elements", 0x12, 0x12],
    ["load_report.host occurs twice", 0x12, 0x1a],
    ["hello.slots has more than 64 elements", 0x0a, 0x22],
  ])("4 MB of empty elements: %s [D10]", async (details, outer, inner) => {
    const client = await rig.linked();
    const length = (4 << 20) - 16;
    const head = Buffer.from([
      outer,
      ...[0, 7, 14, 21].map((shift) => ((length >> shift) & 127) | (shift < 21 ? 128 : 0)),
    ]);
    const before = process.memoryUsage().heapUsed;
    client.say(Buffer.concat([head, Buffer.alloc(length, Buffer.from([inner, 0]))]));
    expect(await client.ended).toMatchObject({ code: status.INVALID_ARGUMENT, details });
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50 << 20);
    expect(rig.told).toContainEqual(["refused", "invalid", details, node]);
    expect(rig.recorded).toEqual([]);
  });
});

test("of two links of a node the later start of the agent has the word, whichever comes last", async () => {
  const first = await rig.linked(1);
  const second = await rig.linked(2);
  expect((await first.ended).code).toBe(status.ABORTED);
  const late = rig.dial();
  late.say(helloOf(node, bootId(1)));
  expect((await late.ended).code).toBe(status.ALREADY_EXISTS);
  const again = await rig.linked(2);
  expect((await second.ended).code).toBe(status.ABORTED);
  again.say({ load_report: { slots: [{ name: "s", state: "SLOT_STATE_EMPTY" }] } });
  await expect.poll(() => rig.view().slots.length).toBe(1);
  expect(rig.told.filter(([event]) => event === "unlinked")).toEqual([
    ["unlinked", node, "replaced"],
    ["unlinked", node, "replaced"],
  ]);
});

test("a link that is reset makes its node unreachable at once", async () => {
  rig.registry.connectionUp(node);
  const client = await rig.linked();
  client.say({ load_report: { slots: [], admitting: true } });
  await expect.poll(() => rig.view().reachable).toBe(true);
  client.call.cancel();
  await expect.poll(() => rig.view().reachable, { timeout: 1_000 }).toBe(false);
  expect(rig.told.at(-1)).toEqual(["unlinked", node, "ended"]);
});

test("nodes whose models a changed catalogue concerns are rig.told, and a changed wish reaches its node", async () => {
  const client = await rig.linked();
  rig.catalogue = [{ ...rules }, { ...rules, id: asId<ModelId>("another") }];
  rig.link.rulesChanged();
  rig.catalogue = [{ ...rules, contextTokens: 4096 }];
  rig.link.rulesChanged();
  rig.desired = { generation: 8n, maintenance: false, prewarmModels: [], acknowledgedFailure: 9n };
  rig.link.desiredStateChanged(node);
  await expect.poll(() => client.received.length).toBe(3);
  expect(client.received.slice(1)).toMatchObject([
    { model_rules_changed: { models: [{ id: "m", context_tokens: 4096 }] } },
    { desired_state: { generation: "8" } },
  ]);
});

test("a router that stops says goodbye, still acknowledges, takes no new links, and then ends them", async () => {
  const client = await rig.linked();
  rig.link.goodbye();
  client.say({ usage_batch: { batch_id: 5, records: [] } });
  await expect.poll(() => client.received.slice(1)).toMatchObject([{ goodbye: {} }, { usage_ack: { batch_id: "5" } }]);
  expect((await rig.dial().ended).code).toBe(status.UNAVAILABLE);
  const before = performance.now();
  await rig.link.close(10_000);
  expect(performance.now() - before).toBeLessThan(5_000);
  expect((await client.ended).code).toBe(status.OK);
});

test("settled attempts reach their node in few messages, the last of them before the link ends", async () => {
  const client = await rig.linked();
  const attempts = Array.from({ length: 300 }, (_, n) => ({ requestId: asId<RequestId>(bootId(n)), attempt: 1 }));
  const settled = () => client.received.filter(({ message }) => message === "settled");
  for (const attempt of attempts.slice(1)) rig.link.settled(node, attempt);
  rig.link.settled(asId("gpu-2"), attempts[1]!);
  await expect.poll(settled).toHaveLength(1);
  rig.link.settled(node, attempts[0]!);
  await rig.link.close(1_000);
  await client.ended;
  const heard = settled().flatMap(({ settled: told }) => (told as { attempts: unknown[] }).attempts);
  expect(heard).toEqual(
    [...attempts.slice(1), attempts[0]!].map(({ requestId }) => ({ request_id: requestId, attempt: 1 })),
  );
});
