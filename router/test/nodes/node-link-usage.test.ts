import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { NodeId } from "@weiche/shared/ids.ts";
import type { LinkClient } from "./link-client.ts";
import { node, NodeLinkRig } from "./node-link-rig.ts";

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
  grant: Buffer.from("q83vEjRWeJCrze8SNFZ4kA", "base64url"),
  tokens_max: "32768",
};

let rig: NodeLinkRig;
beforeEach(async () => {
  rig = await NodeLinkRig.open();
});
afterEach(async () => {
  await rig[Symbol.asyncDispose]();
});

describe("usage", () => {
  const batch = (id: number, ...records: object[]) => ({ usage_batch: { batch_id: id, records } });
  const acks = (client: LinkClient) =>
    client.received.flatMap(({ usage_ack }) => (usage_ack ? [(usage_ack as { batch_id: string }).batch_id] : []));

  test("is acknowledged once it is committed, and not before", async () => {
    rig.commit = Promise.withResolvers();
    const client = await rig.linked();
    client.say(batch(1, wireRecord));
    await expect.poll(() => rig.recorded.length).toBe(1);
    client.say(batch(2));
    await expect.poll(() => acks(client)).toEqual(["2"]);
    rig.commit.resolve();
    await expect.poll(() => acks(client)).toEqual(["2", "1"]);
    expect(rig.recorded).toEqual([
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
            tokensMax: 32_768,
            grant: "q83vEjRWeJCrze8SNFZ4kA",
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

  test("that the database refuses is not acknowledged [C4]", async () => {
    rig.commit = Promise.withResolvers();
    const client = await rig.linked();
    client.say(batch(1, wireRecord));
    await expect.poll(() => rig.recorded.length).toBe(1);
    rig.commit.reject(new Error("no database"));
    await expect.poll(() => rig.told.at(-1)).toEqual(["not recorded", node, 1, new Error("no database")]);
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
    const client = await rig.linked();
    client.say(batch(1, { ...wireRecord, ...wrong }, wireRecord));
    await expect.poll(() => acks(client)).toEqual(["1"]);
    expect(rig.recorded[0]![1]).toHaveLength(1);
    const [, from, rejected] = rig.told.find(([event]) => event === "rejected")! as [
      string,
      NodeId,
      readonly { reason: string }[],
    ];
    expect(from).toBe(node);
    expect(rejected).toHaveLength(1);
    expect(rejected[0]!.reason).toContain(what);
    expect(rejected[0]).toMatchObject({ record: { promptTokens: expect.any(Number) as number } });
  });

  test("of one node waits for the database in a bounded number of batches [C4]", async () => {
    rig.commit = Promise.withResolvers();
    const client = await rig.linked();
    for (let id = 1; id <= 40; id++) client.say(batch(id, wireRecord));
    client.say({ load_report: { sequence: 1, slots: [{ name: "s", state: "SLOT_STATE_EMPTY" }] } });
    await expect.poll(() => rig.view().slots.length).toBe(1);
    expect(rig.recorded).toHaveLength(16);
    rig.commit.resolve();
    await expect.poll(() => acks(client).length).toBe(16);
    client.say(batch(17, wireRecord));
    await expect.poll(() => acks(client).at(-1)).toBe("17");
  });
});
