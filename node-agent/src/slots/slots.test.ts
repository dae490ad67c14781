/** Which of a node's slots a request goes to. */
import { describe, expect, test } from "vitest";
import { Node, refusal } from "../../test/slots/slot-node.ts";
import { a, b, c } from "../../test/slots/slot-play.ts";

describe("among several slots, a request goes to", () => {
  const two = { s: [a, b, c], t: [a, b] };
  const chosen = (node: Node) => node.slots.views().find(({ waiting }) => waiting > 0)?.name;

  test("the one that the router had in mind, if it has the model", async () => {
    const node = await Node.begun(two);
    void node.request(a, { slot: "t" });
    expect(chosen(node)).toBe("t");
  });

  test("another one, if the router's does not have the model", async () => {
    const node = await Node.begun(two);
    void node.request(c, { slot: "t" });
    expect(chosen(node)).toBe("s");
  });

  test("the one where the model is active, then where it starts, then an empty one, then an idle one", async () => {
    const node = await Node.begun(two);
    await node.activated(b, "t");
    expect((await node.request(b)).slot).toBe("t");
    void node.request(a);
    expect(chosen(node)).toBe("s");
    void node.request(a);
    expect(node.slots.views().map(({ waiting }) => waiting)).toEqual([2, 0]);
  });

  test("an idle one rather than one whose engine is full", async () => {
    const node = await Node.begun(two);
    await node.activated(a, "s");
    await node.request(a, { slot: "s" });
    (await node.activated(b, "t")).release();
    void node.request(a);
    expect(chosen(node)).toBe("t");
  });

  test("none, if none has the model", async () => {
    const node = await Node.begun({ s: [a] });
    expect(await refusal(node.request(b))).toBe("model_unavailable 1");
  });
});

describe("prewarming", () => {
  test("starts the model in an empty slot", async () => {
    const node = await Node.begun({ s: [a, b], t: [a, b] });
    await node.activated(a, "s");
    node.slots.prewarm(b);
    expect(node.engines.get("t")!.asked.at(-1)).toBe("activate b");
  });

  test("does nothing when a slot has the model", async () => {
    const node = await Node.begun({ s: [a, b], t: [a, b] });
    await node.activated(a, "s");
    node.slots.prewarm(a);
    expect(node.engines.get("t")!.asked).toEqual(["readopt"]);
  });
});
