/** Messages between an agent and its routers. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { LoopClock } from "@weiche/shared/time/loop-clock.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { usageRecord } from "../outbox/usage-records.ts";
import { at, RouterLinksRig } from "./router-links-rig.ts";

const rules = {
  id: "m",
  category: "MODEL_CATEGORY_LANGUAGE",
  context_tokens: 4096,
  reasoning: {
    mode: "REASONING_MODE_OPTIONAL",
    efforts: ["low"],
    default_effort: "low",
    template_kwargs_accepted: true,
  },
  tools_enforced: true,
};
const record = usageRecord(11, {
  ...{ attempt: 2, model: asId<ModelId>("m"), promptTokens: 7, cachedTokens: 5 },
  ...{ source: "counted", outcome: "client-ended", durationMs: 1234.6 },
});

let rig: RouterLinksRig;
beforeEach(() => {
  rig = new RouterLinksRig();
});
afterEach(() => rig.close());

test("the node knows the version of a router that reports it, and links with a router that does not", async () => {
  const [newer, older] = [
    await rig.openRouter({ router_id: "newer", router_version: `2.0.0${"0".repeat(100)}` }),
    await rig.openRouter({ router_id: "older" }),
  ];
  const links = rig.openLinks(at(newer), at(older));
  await expect.poll(() => links.states().map(({ state }) => state)).toEqual(["linked", "linked"]);
  expect(links.states().map(({ version }) => version)).toEqual([`2.0.0${"0".repeat(59)}`, undefined]);
});

test("a router gets the node's hello, then a report each second and on demand, once for all demands in a turn", async () => {
  const router = await rig.openRouter();
  const opened = rig.openLinks(at(router));
  await expect.poll(() => router.heardOf("load_report").length).toBe(1);
  expect(router.heard[0]).toMatchObject({
    hello: { node: "gpu-1", boot_id: rig.bootId, agent_version: "0.1.0", slots: [{ name: "s", models: ["m"] }] },
  });
  expect(router.heard[1]).toMatchObject({
    load_report: {
      sequence: "1",
      slots: [
        {
          name: "s",
          state: "SLOT_STATE_DRAINING_OPEN",
          active_model: "m",
          next_model: "n",
          running: 3,
          running_of_router: 2,
          waiters: [{ model: "n", waiting: 1 }],
          closes_in_ms: 800,
          state_age_ms: 9_200,
        },
      ],
      host: { memory_total_bytes: String(2 ** 40), gpus: [{ index: 1, temperature_celsius: 61 }] },
      admitting: true,
    },
  });
  const [report] = router.heardOf<{ slots: object[]; host: object }>("load_report");
  expect(report!.slots[0]).not.toHaveProperty("oldest_running_ms");
  expect(report!.host).not.toHaveProperty("cpu_use");
  for (let i = 0; i < 5; i++) opened.reportSoon();
  await expect.poll(() => router.heardOf("load_report").length, { timeout: 500, interval: 5 }).toBe(2);
  await expect.poll(() => router.heardOf("load_report").length, { timeout: 1_500 }).toBe(3);
  expect(router.heardOf<{ sequence: string }>("load_report").map(({ sequence }) => sequence)).toEqual(["1", "2", "3"]);
});

test.each([3_000, 5_000, 8_000])(
  "if our own event loop is blocked for %s ms, the link stays, and ends when the router is silent",
  async (ms) => {
    const clock = new VirtualClock();
    using linkClock = new LoopClock(clock);
    rig.clock = linkClock;
    const router = await rig.openRouter();
    rig.openLinks(at(router));
    await expect.poll(() => router.links.size).toBe(1);
    const beat = async () => {
      router.say({ heartbeat: {} });
      await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await expect.poll(() => rig.channels.length).toBe(1);
    await beat();
    for (let turns = 0; turns < 3; turns++) {
      clock.advance(900);
      clock.stall(ms);
      clock.advance(0); // Timers come first, then waiting data is read.
      await beat();
    }
    expect(rig.told.map(([event]) => event)).not.toContain("routerLinkDown");
    clock.advance(5_000);
    await expect
      .poll(() => rig.told)
      .toContainEqual(["routerLinkDown", at(router), "router-1", "the router is silent"]);
  },
);

test("a router that reads nothing gets no further batch", async () => {
  const router = await rig.openRouter();
  rig.openLinks(at(router));
  await expect.poll(() => router.heardOf("load_report").length).toBe(1);
  const batchesHeard = () => router.heardOf<{ batch_id: string }>("usage_batch").map(({ batch_id: id }) => Number(id));
  for (let batchId = 1n; batchId <= 100n; batchId++) rig.channels[0]!.send(batchId, [record]);
  await expect.poll(() => batchesHeard().length).toBe(9);
  rig.channels[0]!.send(101n, [record]);
  await expect.poll(() => batchesHeard().at(-1)).toBe(101);
  expect(batchesHeard()).toHaveLength(10);
});

test("usage is sent unchanged, and its acknowledgements arrive", async () => {
  const router = await rig.openRouter();
  rig.openLinks(at(router));
  await expect.poll(() => rig.channels.length).toBe(1);
  rig.channels[0]!.send(7n, [record]);
  await expect.poll(() => router.heardOf("usage_batch").length).toBe(1);
  expect(router.heardOf("usage_batch")).toMatchObject([
    {
      batch_id: "7",
      records: [
        {
          request_id: record.requestId,
          attempt: 2,
          account_id: "account-1",
          user_id: "user-1",
          key_id: "key-1",
          model: "m",
          factor_millicredits: "1500",
          prompt_tokens: 7,
          completion_tokens: 11,
          cached_tokens: 5,
          source: "USAGE_SOURCE_COUNTED",
          outcome: "REQUEST_OUTCOME_CLIENT_ENDED",
          duration_ms: 1235,
        },
      ],
    },
  ]);
  router.say({ usage_ack: { batch_id: 7 } });
  await expect
    .poll(() => rig.usage)
    .toEqual([
      ["up", "router-1"],
      ["ack", "router-1", 7n],
    ]);
});

test("rules that this version does not understand are reported and left out, and the others apply", async () => {
  const strange = { ...rules, id: "strange", category: 9 };
  const router = await rig.openRouter({ models: [rules, strange] });
  rig.openLinks(at(router));
  await expect.poll(() => rig.seenRules.length).toBe(1);
  expect(rig.seenRules[0]).toEqual([
    {
      id: "m",
      category: "language",
      contextTokens: 4096,
      reasoning: { mode: "optional", efforts: ["low"], default: "low", templateKwargsAccepted: true },
      toolsEnforced: true,
    },
  ]);
  expect(rig.told).toContainEqual(["rulesUnreadable", "strange", "category 9 is unknown"]);
  router.say({ model_rules_changed: { models: [{ ...rules, context_tokens: 1 }] } });
  await expect.poll(() => rig.seenRules[1]?.[0]?.contextTokens).toBe(1);
});

test("the desired state with the highest generation applies, and no state is applied twice", async () => {
  const wish = (generation: number) => ({ generation, maintenance: generation % 2 === 1, prewarm_models: ["m"] });
  const [older, newer] = [
    await rig.openRouter({ desired_state: wish(4) }),
    await rig.openRouter({ router_id: "router-2", desired_state: wish(6) }),
  ];
  rig.openLinks(at(older), at(newer));
  await expect.poll(() => rig.channels.length).toBe(2);
  older.say({ desired_state: wish(5) });
  newer.say({ desired_state: wish(6) });
  newer.say({ desired_state: wish(7) });
  await expect.poll(() => rig.wishes.at(-1)?.generation).toBe(7n);
  const generations = rig.wishes.map(({ generation }) => generation);
  expect(generations.every((generation, i) => i === 0 || generation > generations[i - 1]!)).toBe(true);
  expect(rig.wishes.at(-1)).toMatchObject({ generation: 7n, maintenance: true, prewarmModels: ["m"] });
  expect(generations).not.toContain(5n);
});

test("a router that says goodbye is marked as leaving, stays linked for running requests, and may still acknowledge", async () => {
  const router = await rig.openRouter();
  const links = rig.openLinks(at(router));
  await expect.poll(() => rig.channels.length).toBe(1);
  expect([rig.channels[0]!.isLeaving, links.states()[0]!.state]).toEqual([false, "linked"]);
  router.say({ goodbye: {} });
  router.say({ usage_ack: { batch_id: 1 } });
  await expect
    .poll(() => rig.usage)
    .toEqual([
      ["up", "router-1"],
      ["ack", "router-1", 1n],
    ]);
  expect([rig.channels[0]!.isLeaving, links.states()[0]!.state]).toEqual([true, "leaving"]);
  expect(router.links.size).toBe(1);
});

test("settled attempts and the fate of a router are passed on as they arrive", async () => {
  const router = await rig.openRouter();
  rig.openLinks(at(router));
  await expect.poll(() => rig.channels.length).toBe(1);
  router.say({ settled: { attempts: [{ request_id: record.requestId, attempt: 2 }] } });
  const settled = ["settled", "router-1", { requestId: record.requestId, attempt: 2 }];
  await expect.poll(() => rig.answers).toEqual([["up", "router-1"], settled]);
  rig.answers.length = 0;
  router[Symbol.dispose]();
  await expect.poll(() => rig.answers).toEqual([["down", "router-1", false]]);
  await rig.openRouter({ router_id: "router-2" }, "127.0.0.1", router.port);
  await expect
    .poll(() => rig.answers.slice(1), { timeout: 10_000 })
    .toEqual([
      ["up", "router-2"],
      ["replaced", "router-1"],
    ]);
});

test("a router that ends its link has ended it in order", async () => {
  const router = await rig.openRouter();
  rig.openLinks(at(router));
  await expect.poll(() => rig.channels.length).toBe(1);
  for (const link of router.links) link.end();
  await expect
    .poll(() => rig.answers.slice(0, 2))
    .toEqual([
      ["up", "router-1"],
      ["down", "router-1", true],
    ]);
});

test("a router that exceeds the limits of messages is abandoned, and the reason names the field", async () => {
  const router = await rig.openRouter();
  const links = rig.openLinks(at(router));
  await expect.poll(() => links.states()).toMatchObject([{ state: "linked" }]);
  router.say({ settled: { attempts: Array.from({ length: 8_001 }, () => ({})) } });
  const reason = "the router sent an invalid message: settled.attempts has more than 8000 elements";
  await expect.poll(() => rig.told).toContainEqual(["routerLinkDown", at(router), "router-1", reason]);
  expect(rig.answers.filter(([event]) => event === "settled")).toEqual([]);
});
