import { pino } from "pino";
import { beforeEach, expect, test } from "vitest";
import { asId, type ModelId, type RequestId, type SlotName } from "@weiche/shared/ids.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { usageRecord } from "../../test/outbox/usage-records.ts";
import { ChunkGaps } from "../answer/chunk-gaps.ts";
import type { RequestSummary } from "../exchange/ingress-events.ts";
import { createIngressEvents, createLinkEvents, createUsageEvents } from "./link-events.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { endedInOrder } from "../links/router-link.ts";

const model = asId<ModelId>("m");
let lines: { readonly level: number; readonly msg: string }[];
let metrics: Metrics;
const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line) as never) });

beforeEach(() => {
  lines = [];
  metrics = createMetrics();
});

/** Returns the samples of one metric that are not 0. */
async function samples(name: string): Promise<string[]> {
  const text = await metrics.registry.getSingleMetricAsString(name);
  return text.split("\n").filter((line) => !line.startsWith("#") && !line.endsWith(" 0"));
}

function ended(given: Partial<UsageRecord> | undefined, name = model, gaps = new ChunkGaps()): RequestSummary {
  const record = given && usageRecord(3, { model: name, promptTokens: 7, ...given });
  const [requestId, slot] = [asId<RequestId>("r"), record ? asId<SlotName>("a") : undefined];
  return { requestId, model: name, path: nodePaths.chat, slot, waitedMs: 0, record, gaps, error: undefined };
}

test("a request is counted by its outcome, with its tokens, its first token and the gaps after it", async () => {
  const events = createIngressEvents(log, metrics, new Set([model]));
  const gaps = new ChunkGaps();
  gaps.take(1, 0);
  gaps.take(2, 20);
  gaps.take(3, 820);
  events.requestEnded(ended({ firstTokenMs: 30 }, model, gaps));
  events.requestEnded(ended({ outcome: "broken", promptTokens: 0, completionTokens: 0 }));
  events.requestEnded(ended(undefined));
  expect(await samples("weiche_agent_requests_total")).toEqual(
    ["finished", "broken", "refused"].map((outcome) => `weiche_agent_requests_total{model="m",outcome="${outcome}"} 1`),
  );
  expect(await samples("weiche_agent_tokens_total")).toEqual([
    'weiche_agent_tokens_total{model="m",kind="prompt"} 7',
    'weiche_agent_tokens_total{model="m",kind="completion"} 3',
  ]);
  expect(await samples("weiche_agent_time_to_first_token_seconds")).toContain(
    'weiche_agent_time_to_first_token_seconds_sum{model="m"} 0.03',
  );
  const inter = await samples("weiche_agent_inter_token_seconds");
  for (const end of ['_bucket{le="0.025",model="m"} 1', '_bucket{le="0.5",model="m"} 1', '_bucket{le="1",model="m"} 2'])
    expect(inter).toContain(`weiche_agent_inter_token_seconds${end}`);
  expect(inter.slice(-3)).toEqual([
    'weiche_agent_inter_token_seconds_bucket{le="+Inf",model="m"} 2',
    'weiche_agent_inter_token_seconds_sum{model="m"} 0.82',
    'weiche_agent_inter_token_seconds_count{model="m"} 2',
  ]);
});

test("100,000 invented model names make one series", async () => {
  const events = createIngressEvents(log, metrics, new Set([model]));
  const before = (await metrics.registry.metrics()).split("\n").length;
  for (let n = 0; n < 100_000; n++) events.requestEnded(ended(undefined, asId<ModelId>(`made-up-${n}`)));
  expect(await samples("weiche_agent_requests_total")).toEqual([
    'weiche_agent_requests_total{model="other",outcome="refused"} 100000',
  ]);
  expect((await metrics.registry.metrics()).split("\n").length).toBe(before);
});

test("a link that goes up or down is logged, as a warning only if it was not closed on purpose", async () => {
  const events = createLinkEvents(log, metrics);
  events.routerLinkUp("r:1", "id");
  expect(await samples("weiche_agent_router_link_up")).toEqual(['weiche_agent_router_link_up{router="r:1"} 1']);
  events.routerLinkDown("r:1", "id", endedInOrder);
  events.routerLinkDown("r:1", "id", "UNAVAILABLE: gone");
  expect(await samples("weiche_agent_router_link_up")).toEqual([]);
  expect(lines.map(({ level }) => level)).toEqual([30, 30, 40]);
});

test("a full outbox and its end are logged at once", async () => {
  const events = createUsageEvents(log, metrics);
  events.outboxRoomAgain();
  expect(await samples("weiche_agent_outbox_admitting")).toEqual(["weiche_agent_outbox_admitting 1"]);
  events.outboxFull("ENOSPC");
  expect(await samples("weiche_agent_outbox_admitting")).toEqual([]);
  expect(lines.map(({ level }) => level)).toEqual([30, 50]);
});
