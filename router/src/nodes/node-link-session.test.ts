import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { LoopClock } from "@weiche/shared/time/loop-clock.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { LinkCall } from "./node-link-codec.ts";
import { NodeLinkSession, type NodeLinkParts } from "./node-link-session.ts";
import { NodeRegistry } from "./registry.ts";

function simulatedCall(): LinkCall {
  const stream = new Duplex({ objectMode: true, read() {}, write: (_message, _encoding, done) => done() });
  const about = { getAuthContext: () => ({}), getPeer: () => "10.0.0.9:50000" };
  return Object.assign(stream, about) as unknown as LinkCall;
}
const hello = {
  message: { $case: "hello", value: { node: "gpu-1", bootId: uuidv7(systemClock), agentVersion: "0", slots: [] } },
};
const report = { message: { $case: "loadReport", value: { slots: [], maintenance: false, admitting: true } } };

test("with TLS, a link without a certificate is refused", () => {
  const refused: string[] = [];
  const events = { nodeRefused: (reason: string, _detail: string, from: string) => refused.push(`${reason} ${from}`) };
  const parts = { tls: {}, clock: systemClock, events } as unknown as NodeLinkParts;
  const call = simulatedCall();
  new NodeLinkSession(call, parts, new Map());
  call.emit("data", hello);
  expect(refused).toEqual(["name 10.0.0.9"]);
});

/** Returns a link whose agent has reported once, on virtual time. */
function linked() {
  const clock = new VirtualClock();
  const linkClock = new LoopClock(clock);
  const ended: string[] = [];
  const events = { nodeLinked() {}, nodeUnlinked: (_node: string, reason: string) => ended.push(reason) };
  const parts = { clock: linkClock, events, registry: new NodeRegistry(), onBoot() {}, rulesOf: () => [] };
  const more = { desiredStateOf() {}, routers: () => [] };
  const call = simulatedCall();
  new NodeLinkSession(call, { ...parts, ...more } as unknown as NodeLinkParts, new Map());
  call.emit("data", hello);
  call.emit("data", report);
  return { clock, ended, report: () => call.emit("data", report), [Symbol.dispose]: () => linkClock[Symbol.dispose]() };
}

test.each([3_000, 5_000, 8_000])(
  "a report that waited while the router's event loop was blocked for %s ms counts",
  (ms) => {
    using link = linked();
    for (let turns = 0; turns < 5; turns++) {
      link.clock.advance(900);
      link.clock.stall(ms);
      link.clock.advance(0); // timers run first, then waiting data is read
      link.report();
    }
    expect(link.ended).toEqual([]);
  },
);

test("an agent that stops reporting is unlinked within 5 s", () => {
  using link = linked();
  link.clock.advance(3_900);
  expect(link.ended).toEqual([]);
  link.clock.advance(1_100);
  expect(link.ended).toEqual(["silent"]);
});
