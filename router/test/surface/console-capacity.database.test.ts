/** The capacity that the console computes from the usage of a week. */
import { describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { NodeDetail } from "../../src/nodes/registry.ts";
import { OwnCapacity } from "../../src/simulate/own/own-capacity.ts";
import { readOwnUsage } from "../../src/simulate/own/own-usage.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { grantedNode, makeRecord } from "../usage/usage-records.ts";
import { consoleEvents, nodeWithSlot, startConsole } from "./console-rig.ts";
import { PutForwardClock } from "./put-forward-clock.ts";

const clock = new PutForwardClock();
let nodes: readonly NodeDetail[] = [];
const rig = await forThisFile(startConsole({ clock, details: () => nodes }));

describe("the capacity", () => {
  const state = async (cookie: string, isWanted: (item: any) => boolean) => {
    for await (const { data } of consoleEvents(rig, "show=capacity", cookie)) {
      const item = data.items?.["capacity"];
      if (item && isWanted(item)) return item;
    }
  };
  const isOver = ({ step }: any) => step === "idle";

  test("is simulated from the week's usage on the linked nodes: waits, slots, and credits for each GPU hour [H9]", async () => {
    const cookie = await rig.signIn();
    nodes = [];
    expect((await rig.send("POST", "/console/capacity", undefined, cookie)).status).toBe(204);
    expect(await state(cookie, isOver)).toMatchObject({ problem: "no-usage", answer: null });
    const sent = Array.from({ length: 120 }, (_, index) =>
      makeRecord(createRandom(index), clock.now() - 3_600_000 - index * 1_000, {
        ...{ model: asId<ModelId>(index % 4 === 0 ? "lost" : "m"), promptTokens: 400, completionTokens: 101 },
        ...{ factor: millicredits(2_000n), durationMs: 5_000, firstTokenMs: 1_000, estimatedTokens: undefined },
      }),
    );
    const { pool } = rig.portal.database;
    await makeUsageDays(pool, [clock.now(), clock.now() - 7_200_000]);
    await commitUsage(
      pool,
      sent.map((record) => ({ node: grantedNode, record })),
    );
    expect((await rig.send("POST", "/console/capacity", undefined, cookie)).status).toBe(204);
    expect(await state(cookie, isOver)).toMatchObject({ problem: "no-node", answer: null });
    nodes = [nodeWithSlot({ models: [asId<ModelId>("other")], activeModel: asId<ModelId>("other"), maxConcurrent: 2 })];
    expect((await rig.send("POST", "/console/capacity", undefined, cookie)).status).toBe(204);
    expect(await state(cookie, isOver)).toMatchObject({ problem: "no-model", answer: null });
    nodes = [nodeWithSlot({ models: [asId<ModelId>("m")], activeModel: asId<ModelId>("m"), maxConcurrent: 2 })];
    expect((await rig.send("POST", "/console/capacity", undefined, cookie)).status).toBe(204);
    const { answer } = await state(cookie, isOver);
    expect(answer).toMatchObject({ requests: 120, leftOut: 30, isWaiting: true, gpus: 1 });
    expect(answer.models).toMatchObject([{ model: "m", requests: 90, gaveUp: 0 }]);
    expect(answer.slots).toMatchObject([{ node: "gpu-1", slot: "a", waitShare: 1, switchesPerHour: 0 }]);
    expect(answer.measured.map(({ path }: { path: string }) => path)).toEqual(["step.baseMs", "places"]);
    expect(Number(answer.measured[0].value) / 40).toBeCloseTo(1, 1);
    const soldPerHour = (90 * 501 * 2) / 168;
    expect(answer.creditsPerGpuHour / soldPerHour).toBeCloseTo(1, 1);
  });

  test.each([
    ["needs more memory than its thread may have", "too-large", { memoryMiB: 8 }, "ERR_WORKER_OUT_OF_MEMORY"],
    [
      "fails",
      "failed",
      {
        details() {
          throw new Error("the nodes are broken");
        },
      },
      "the nodes are broken",
    ],
  ])("says that it gave no answer because it %s, and the log has the reason", async (_, problem, more, reason) => {
    const failures: unknown[] = [];
    await using capacity = new OwnCapacity({
      ...{ pool: rig.portal.database.pool, clock, details: () => nodes, routers: () => 1 },
      events: { capacityFailed: (error) => void failures.push(error) },
      ...more,
    });
    for (const run of [1, 2]) {
      expect(capacity.start()).toBe(true);
      await expect.poll(() => capacity.state.step, { timeout: 30_000 }).toBe("idle");
      expect(capacity.state).toMatchObject({ problem, wasCancelled: false, answer: undefined });
      expect(failures).toHaveLength(run);
    }
    const { code, message } = failures[0] as NodeJS.ErrnoException;
    expect([code, message]).toContain(reason);
  });

  test("has one run at a time, and a cancelled run leaves the answer before it", async () => {
    const cookie = await rig.signIn();
    const statuses = await Promise.all(
      [1, 2, 3].map(async () => (await rig.send("POST", "/console/capacity", undefined, cookie)).status),
    );
    expect(statuses.toSorted((one, other) => one - other)).toEqual([204, 409, 409]);
    expect((await rig.send("DELETE", "/console/capacity", undefined, cookie)).status).toBe(204);
    expect(await state(cookie, isOver)).toMatchObject({ wasCancelled: true, answer: { requests: 120 } });
  });

  test("is read into the past until there are enough requests, so that its memory is bounded", async () => {
    const { pool } = rig.portal.database;
    const usage = await readOwnUsage(pool, clock.now(), { goOn: () => true, requestsMax: 50 });
    expect([usage!.requests <= 121, usage!.hours.length < 168]).toEqual([true, true]);
    expect(await readOwnUsage(pool, clock.now(), { goOn: () => false })).toBeUndefined();
  });
});
