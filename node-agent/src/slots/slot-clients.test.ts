/** Clients that wait at a slot, leave it, or give their places back. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { Node, refusal } from "../../test/slots/slot-node.ts";
import { a, b } from "../../test/slots/slot-play.ts";
import { WireState } from "./slot-view.ts";

describe("a slot", () => {
  test("removes a waiter at once when its client leaves, and rejects with the client's reason", async () => {
    const node = await Node.begun();
    await node.activated(a);
    const client = new AbortController();
    const waiter = node.request(b, { signal: client.signal });
    client.abort(new Error("client left"));
    expect(node.slots.views()[0]).toMatchObject({ state: WireState.ACTIVE, waiting: 0 });
    expect(await refusal(waiter)).toBe("Error: client left");
  });

  test("takes the place back at once when the client leaves at the moment of admission", async () => {
    const node = await Node.begun();
    const client = new AbortController();
    node.onTold = (event) => {
      if (event === "requestAdmitted") client.abort(new Error("client left"));
    };
    const first = node.activated(a);
    const second = node.request(a, { signal: client.signal });
    await first;
    expect(await refusal(second)).toBe("Error: client left");
    expect(node.slots.views()[0]!.running).toBe(1);
  });

  test("finishes an event before it handles events that occur meanwhile", async () => {
    const node = await Node.begun();
    node.onTold = (event) => {
      if (event !== "requestAdmitted") return;
      node.onTold = () => {};
      void node.request(a);
    };
    void node.request(a);
    await node.activated(a);
    const answers = node.told.map(([event]) => event).filter((event) => String(event).startsWith("request"));
    expect(answers).toEqual(["requestAdmitted", "requestAdmitted"]);
    expect(node.slots.views()[0], "the event waited in the queue").toMatchObject({ running: 2, waiting: 1 });
  });

  test("removes its listener from a client that it has answered", async () => {
    const node = await Node.begun();
    const { signal } = new AbortController();
    const held = node.request(a, { signal });
    expect(getEventListeners(signal, "abort").length).toBe(1);
    await node.activated(a);
    await held;
    expect(getEventListeners(signal, "abort").length).toBe(0);
  });

  test("does not admit a client that left before its request", async () => {
    const node = await Node.begun();
    expect(await refusal(node.request(a, { signal: AbortSignal.abort(new Error("gone")) }))).toBe("Error: gone");
    expect(node.engine.asked).toEqual(["readopt"]);
  });

  test("takes a place back once, however often it is released", async () => {
    const node = await Node.begun();
    const first = await node.activated(a);
    const second = await node.request(a);
    first.release();
    first.release();
    expect(node.slots.views()[0]!.running).toBe(1);
    second.release();
    expect(node.slots.views()[0]!.running).toBe(0);
  });
});
