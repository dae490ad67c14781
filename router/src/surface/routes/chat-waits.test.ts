/** Tests a chat that waits: its page gets its position until the answer comes. */
import { expect, test } from "vitest";
import { asId, type NodeId, type RequestId } from "@weiche/shared/ids.ts";
import type { NodeRequest } from "@weiche/shared/node-protocol.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { ChatWaits, type Waiting } from "./chat-waits.ts";

const [node, id] = [asId<NodeId>("n1"), asId<RequestId>("request-1")];
const waiting = (position: number, attempt = 1): NodeRequest => ({
  ...{ requestId: id, attempt, model: "m", state: "waiting", completionTokens: 0 },
  ...{ position, estimateMs: position * 7_000 },
});

function rig(list: () => Promise<readonly NodeRequest[]>) {
  const clock = new VirtualClock();
  let asked = 0;
  const waits = new ChatWaits({ clock, ofNode: () => (asked++, list()) });
  const heard: (Waiting | undefined)[] = [];
  let isWaited = true;
  const follow = () => waits.follow(node, { id, attempts: 1 }, (at) => (heard.push(at), isWaited));
  return { clock, heard, follow, asked: () => asked, answer: () => (isWaited = false) };
}

test("its position and estimate are asked for after a second, then every two, until the answer comes [B9]", async () => {
  let position = 3;
  const { clock, heard, follow, answer } = rig(async () => [waiting(9, 2), waiting(position--)]);
  follow();
  await clock.advanceAsync(999);
  expect(heard).toEqual([]);
  await clock.advanceAsync(2_001);
  answer();
  await clock.advanceAsync(60_000);
  expect(heard).toEqual([3, 2, 1].map((at) => ({ position: at, estimateMs: at * 7_000 })));
  expect(clock.pending).toBe(0);
});

test("a node that cannot be asked, or does not have it, is asked again", async () => {
  const lists = [() => Promise.reject(new Error("away")), async () => [], async () => [waiting(1)]];
  const { clock, heard, follow } = rig(() => lists.shift()!());
  follow();
  await clock.advanceAsync(5_000);
  expect(heard).toEqual([undefined, undefined, { position: 1, estimateMs: 7_000 }]);
});

test("many chats that wait on one node ask it once a second at most", async () => {
  const { clock, heard, follow, asked } = rig(async () => [waiting(1)]);
  for (let chat = 0; chat < 50; chat++) follow();
  await clock.advanceAsync(5_000);
  expect(heard).toHaveLength(150);
  expect(asked()).toBe(3);
});
