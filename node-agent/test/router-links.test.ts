import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/clock.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type AccountId, type KeyId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import type { RequestId, SlotName, UserId } from "@weiche/shared/ids.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { createRandom } from "@weiche/shared/testing/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import type { DesiredState } from "../src/report/desired-state.ts";
import type { NodeLoad } from "../src/report/load.ts";
import { RouterLinks, type RouterLinkEvents } from "../src/report/router-links.ts";
import type { UsageChannel } from "../src/usage/usage-channel.ts";
import { SimulatedLinkRouter, type Message } from "./simulated-link-router.ts";

const bootId = uuidv7(systemClock);
const welcome = { router_id: "router-1", data_address: "127.0.0.1:1" };
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
const record: UsageRecord = {
  requestId: asId<RequestId>(uuidv7(systemClock)),
  attempt: 2,
  accountId: asId<AccountId>("a"),
  userId: asId<UserId>("u"),
  keyId: asId<KeyId>("k"),
  model: asId<ModelId>("m"),
  factor: millicredits(1_500n),
  promptTokens: 7,
  completionTokens: 11,
  cachedTokens: 5,
  source: "counted",
  outcome: "client-ended",
  durationMs: 1234.6,
};

let load: NodeLoad;
let told: unknown[][];
let usage: unknown[][];
let channels: UsageChannel[];
let seenRules: (readonly ModelRules[])[];
let wishes: DesiredState[];
let names: Map<string, readonly string[]>;
let links: RouterLinks | undefined;
const routers: SimulatedLinkRouter[] = [];

beforeEach(() => {
  [told, usage, channels, seenRules, wishes, names] = [[], [], [], [], [], new Map()];
  load = {
    slots: [
      {
        name: asId<SlotName>("s"),
        models: [asId<ModelId>("m")],
        kind: "draining-open",
        active: asId<ModelId>("m"),
        next: asId<ModelId>("n"),
        running: 3,
        runningByRouter: new Map([["router-1", 2]]),
        waiting: 1,
        waitingByModel: new Map([[asId<ModelId>("n"), 1]]),
        closesInMs: 800.4,
        stateAgeMs: 9_199.6,
        sleepers: [],
      },
    ],
    engines: new Map(),
    host: { memoryTotalBytes: 2 ** 40 },
    gpus: [{ index: 1, uuid: "GPU-1", temperatureCelsius: 61 }],
    maintenance: false,
    admitting: true,
  };
});

afterEach(async () => {
  await links?.close();
  for (const router of routers.splice(0)) router[Symbol.dispose]();
});

async function openRouter(more: Message = {}, host?: string, port?: number): Promise<SimulatedLinkRouter> {
  const router = await new SimulatedLinkRouter({ ...welcome, ...more }).listen(host, port);
  routers.push(router);
  return router;
}

function openLinks(...addresses: readonly string[]): RouterLinks {
  const events = new Proxy({} as RouterLinkEvents, {
    get:
      (_target, name) =>
      (...args: unknown[]) =>
        void told.push([String(name), ...args]),
  });
  links = new RouterLinks({
    routers: addresses,
    clock: systemClock,
    random: (() => {
      const random = createRandom(1);
      return () => random.next();
    })(),
    hello: {
      node: asId<NodeId>("gpu-1"),
      bootId,
      agentVersion: "0.1.0",
      slots: [{ name: asId<SlotName>("s"), models: [asId<ModelId>("m")] }],
    },
    load: () => load,
    resolve: async (name) => {
      const found = names.get(name);
      if (!found) throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
      return found;
    },
    usage: {
      linkUp: (channel) => {
        channels.push(channel);
        usage.push(["up", channel.routerId]);
      },
      acknowledged: (...args) => usage.push(["ack", ...args]),
      linkDown: (routerId) => usage.push(["down", routerId]),
    },
    handle: (stream) => stream.destroy(),
    onRules: (news) => seenRules.push(news),
    onDesiredState: (state) => wishes.push(state),
    events,
  });
  return links;
}

const at = ({ port }: SimulatedLinkRouter, host = "127.0.0.1") => `${host}:${port}`;

test("a router hears who the node is, then how it does, each second and at once when asked to, once for all in a turn", async () => {
  const router = await openRouter();
  const opened = openLinks(at(router));
  await expect.poll(() => router.heardOf("load_report").length).toBe(1);
  expect(router.heard[0]).toMatchObject({
    hello: { node: "gpu-1", boot_id: bootId, agent_version: "0.1.0", slots: [{ name: "s", models: ["m"] }] },
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
  await expect.poll(() => router.heardOf("load_report").length, { timeout: 500 }).toBe(2);
  await expect.poll(() => router.heardOf("load_report").length, { timeout: 1_500 }).toBe(3);
  expect(router.heardOf<{ sequence: string }>("load_report").map(({ sequence }) => sequence)).toEqual(["1", "2", "3"]);
});

test("usage goes up as it is, and its acknowledgements come back", async () => {
  const router = await openRouter();
  openLinks(at(router));
  await expect.poll(() => channels.length).toBe(1);
  channels[0]!.send(7n, [record]);
  await expect.poll(() => router.heardOf("usage_batch").length).toBe(1);
  expect(router.heardOf("usage_batch")).toMatchObject([
    {
      batch_id: "7",
      records: [
        {
          request_id: record.requestId,
          attempt: 2,
          account_id: "a",
          user_id: "u",
          key_id: "k",
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
    .poll(() => usage)
    .toEqual([
      ["up", "router-1"],
      ["ack", "router-1", 7n],
    ]);
});

test("rules that this version does not understand are told and left out; the others hold", async () => {
  const strange = { ...rules, id: "strange", category: 9 };
  const router = await openRouter({ models: [rules, strange] });
  openLinks(at(router));
  await expect.poll(() => seenRules.length).toBe(1);
  expect(seenRules[0]).toEqual([
    {
      id: "m",
      category: "language",
      contextTokens: 4096,
      reasoning: { mode: "optional", efforts: ["low"], default: "low", templateKwargsAccepted: true },
      toolsEnforced: true,
    },
  ]);
  expect(told).toContainEqual(["rulesUnreadable", "strange", "category 9 is unknown"]);
  router.say({ model_rules_changed: { models: [{ ...rules, context_tokens: 1 }] } });
  await expect.poll(() => seenRules[1]?.[0]?.contextTokens).toBe(1);
});

test("of what several routers want, the highest generation holds, and nothing is applied twice", async () => {
  const wish = (generation: number) => ({ generation, maintenance: generation % 2 === 1, prewarm_models: ["m"] });
  const [older, newer] = [
    await openRouter({ desired_state: wish(4) }),
    await openRouter({ router_id: "router-2", desired_state: wish(6) }),
  ];
  openLinks(at(older), at(newer));
  await expect.poll(() => channels.length).toBe(2);
  older.say({ desired_state: wish(5) });
  newer.say({ desired_state: wish(6) });
  newer.say({ desired_state: wish(7) });
  await expect.poll(() => wishes.at(-1)?.generation).toBe(7n);
  const generations = wishes.map(({ generation }) => generation);
  expect(generations.every((generation, i) => i === 0 || generation > generations[i - 1]!)).toBe(true);
  expect(wishes.at(-1)).toEqual({ generation: 7n, maintenance: true, prewarmModels: ["m"] });
  expect(generations).not.toContain(5n);
});

test("a router that says goodbye gets no more usage, and may still acknowledge", async () => {
  const router = await openRouter();
  openLinks(at(router));
  await expect.poll(() => channels.length).toBe(1);
  router.say({ goodbye: {} });
  router.say({ usage_ack: { batch_id: 1 } });
  await expect
    .poll(() => usage)
    .toEqual([
      ["up", "router-1"],
      ["down", "router-1"],
      ["ack", "router-1", 1n],
    ]);
  expect(router.links.size).toBe(1);
});

test("a lost link is back within 5 s, as often as it is lost", async () => {
  let router = await openRouter();
  openLinks(at(router));
  for (let round = 1; round <= 3; round++) {
    await expect.poll(() => channels.length, { timeout: 5_000 }).toBe(round);
    router[Symbol.dispose]();
    await expect.poll(() => usage.filter(([what]) => what === "down").length).toBe(round);
    router = await openRouter({}, "127.0.0.1", router.port);
  }
  await expect.poll(() => channels.length, { timeout: 5_000 }).toBe(4);
  expect(told.filter(([event]) => event === "routerLinkUp")).toHaveLength(4);
});

test("every address behind a name is a router of its own, new ones are found, and a failing lookup changes nothing", async () => {
  const first = await openRouter();
  const second = await openRouter({ router_id: "router-2" }, "127.0.0.2", first.port);
  names.set("routers.example", ["127.0.0.1"]);
  const opened = openLinks(at(first, "routers.example"));
  await expect.poll(() => channels.map(({ routerId }) => routerId)).toEqual(["router-1"]);
  names.set("routers.example", ["127.0.0.1", "127.0.0.2"]);
  first[Symbol.dispose](); // an ended link is a reason to look again
  await expect.poll(() => channels.map(({ routerId }) => routerId)).toContain("router-2");
  names.clear();
  await expect
    .poll(() => told, { timeout: 5_000 })
    .toContainEqual(["routerNameUnresolved", "routers.example", "ENOTFOUND"]);
  const again = await openRouter({ router_id: "router-3" }, "127.0.0.1", first.port);
  await expect.poll(() => channels.map(({ routerId }) => routerId), { timeout: 5_000 }).toContain("router-3");
  expect(again.links.size).toBe(1);
  expect(second.links.size).toBe(1);
  expect(opened.states()).toEqual([
    { address: `routers.example:${first.port} (127.0.0.1)`, state: "linked", dataSessions: 0 },
    { address: `routers.example:${first.port} (127.0.0.2)`, state: "linked", dataSessions: 0 },
  ]);
});

test("a name without an answer is asked for again soon", async () => {
  const router = await openRouter();
  openLinks(at(router, "later.example"));
  await expect.poll(() => told).toEqual([["routerNameUnresolved", "later.example", "ENOTFOUND"]]);
  names.set("later.example", ["127.0.0.1"]);
  await expect.poll(() => channels.length, { timeout: 5_000 }).toBe(1);
});

test("a router that two addresses lead to is linked once, and each up is followed by a down", async () => {
  const router = await openRouter({}, "0.0.0.0");
  names.set("twice.example", ["127.0.0.1", "127.0.0.2"]);
  openLinks(at(router, "twice.example"));
  await expect
    .poll(() => usage)
    .toEqual([
      ["up", "router-1"],
      ["down", "router-1"],
      ["up", "router-1"],
    ]);
  // The link that is left lasts, and the other address is not dialled meanwhile.
  await expect
    .poll(() => router.heardOf<{ sequence: string }>("load_report").at(-1)!.sequence, { timeout: 10_000 })
    .toBe("6");
  expect(router.heardOf("hello")).toHaveLength(2);
  expect(router.links.size).toBe(1);
  router.links.forEach((link) => link.end());
  await expect.poll(() => usage.length, { timeout: 5_000 }).toBeGreaterThanOrEqual(5);
  await expect.poll(() => router.links.size).toBe(1);
  expect(usage.map(([what]) => what).join(" ")).toMatch(/^up( down up)+$/);
});

test("a router that is not there is told about once, and dialled on", async () => {
  const nothing = await openRouter();
  nothing[Symbol.dispose]();
  openLinks(at(nothing));
  await expect.poll(() => told.length).toBeGreaterThan(0);
  const back = await openRouter({}, "127.0.0.1", nothing.port);
  await expect.poll(() => back.links.size, { timeout: 5_000 }).toBe(1);
  await expect
    .poll(() => told.map(([event]) => event))
    .toEqual(["routerLinkFailed", "routerLinkUp", "dataSessionFailed"]);
});

test("a router that accepts and says nothing is given up within 5 s", async () => {
  const silent = createServer(() => {});
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  openLinks(`127.0.0.1:${(silent.address() as AddressInfo).port}`);
  await expect.poll(() => told[0]?.[0], { timeout: 5_000 }).toBe("routerLinkFailed");
  await links!.close();
  silent.close();
});
