/** The choice among a node's slots for a request. */
import { describe, expect, test } from "vitest";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { settle } from "@weiche/shared/testing/virtual-clock.ts";
import { Node, refusal } from "../../test/slots/slot-node.ts";
import { a, b, c, endpoint } from "../../test/slots/slot-play.ts";

describe("among several slots, a request goes to", () => {
  const two = { s: [a, b, c], t: [a, b] };
  const chosen = (node: Node) => node.slots.views().find(({ waiting }) => waiting > 0)?.name;

  test("the slot that the router chose, if it serves the model", async () => {
    const node = await Node.begun(two);
    void node.request(a, { slot: "t" });
    expect(chosen(node)).toBe("t");
  });

  test("another slot, if the router's choice does not serve the model", async () => {
    const node = await Node.begun(two);
    void node.request(c, { slot: "t" });
    expect(chosen(node)).toBe("s");
  });

  test("a slot where the model is active, else where it starts, else an empty slot, else an idle slot", async () => {
    const node = await Node.begun(two);
    await node.activated(b, "t");
    expect((await node.request(b)).slot).toBe("t");
    void node.request(a);
    expect(chosen(node)).toBe("s");
    void node.request(a);
    expect(node.slots.views().map(({ waiting }) => waiting)).toEqual([2, 0]);
  });

  test("an idle slot rather than one whose engine is full", async () => {
    const node = await Node.begun(two);
    await node.activated(a, "s");
    await node.request(a, { slot: "s" });
    (await node.activated(b, "t")).release();
    void node.request(a);
    expect(chosen(node)).toBe("t");
  });

  test("no slot, if none serves the model", async () => {
    const node = await Node.begun({ s: [a] });
    expect(await refusal(node.request(b))).toBe("model_unavailable 1");
  });
});

describe("an engine of several models", () => {
  const [x, y] = ["x", "y"].map((name) => asId<ModelId>(name)) as [ModelId, ModelId];
  const together = { s: [a, b] };

  test("serves all of them without a switch, with one set of places [B10]", async () => {
    const node = await Node.begun(together, { [a]: [a, x, y] });
    const first = await node.activated(a);
    const second = await node.request(x);
    expect([first.engine.model, second.engine.model, second.waitedFor]).toEqual([a, a, "place"]);
    const third = node.request(y);
    await settle();
    expect(node.slots.views()[0]).toMatchObject({
      ...{ models: [a, x, y, b], activeModel: a, activeModels: [a, x, y], running: 2, maxConcurrent: 2 },
      waiters: [{ model: y, waiting: 1 }],
    });
    first.release();
    expect((await third).engine.model).toBe(a);
    expect(node.engine.asked).toEqual(["readopt", "activate a"]);
    expect(node.told.filter(([event]) => event === "requestAdmitted").map(([, , model]) => model)).toEqual([a, x, y]);
  });

  test("is switched to another engine once, and starts again for any of its models [B10]", async () => {
    const node = await Node.begun(together, { [a]: [a, x] });
    (await node.activated(a)).release();
    void node.request(b);
    await node.clock.advanceAsync(10_000);
    node.engine.retirement!.resolve();
    await settle();
    expect(node.slots.views()[0]).toMatchObject({ activeModel: b, activeModels: undefined });
    node.engine.activation!.resolve(endpoint);
    await settle();
    void node.request(x);
    expect(node.slots.views()[0]).toMatchObject({ nextModel: a, nextModels: [a, x] });
  });

  test("is prewarmed by any of its models, and not while it is awake", async () => {
    const node = await Node.begun({ s: [a, b], t: [a, b] }, { [a]: [a, x] });
    await node.activated(a, "s");
    node.slots.prewarm(x);
    expect(node.engines.get("t")!.asked).toEqual(["readopt"]);
    const cold = await Node.begun(together, { [a]: [a, x] });
    cold.slots.prewarm(x);
    expect(cold.engine.asked.at(-1)).toBe("activate a");
  });
});

describe("prewarming", () => {
  test("starts the model in an empty slot", async () => {
    const node = await Node.begun({ s: [a, b], t: [a, b] });
    await node.activated(a, "s");
    node.slots.prewarm(b);
    expect(node.engines.get("t")!.asked.at(-1)).toBe("activate b");
  });

  test("does nothing when a slot serves the model", async () => {
    const node = await Node.begun({ s: [a, b], t: [a, b] });
    await node.activated(a, "s");
    node.slots.prewarm(a);
    expect(node.engines.get("t")!.asked).toEqual(["readopt"]);
  });
});
