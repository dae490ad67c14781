import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { systemClock } from "@weiche/shared/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import type { LinkCall } from "./node-link-codec.ts";
import { NodeLinkSession, type NodeLinkParts } from "./node-link-session.ts";

test("with TLS, a link whose certificate is not known is nobody's", () => {
  const refused: string[] = [];
  const events = { nodeRefused: (reason: string) => refused.push(reason) };
  const parts = { tls: {}, clock: systemClock, events } as unknown as NodeLinkParts;
  const stream = new Duplex({ objectMode: true, read() {}, write: (_message, _encoding, done) => done() });
  const call = Object.assign(stream, { getAuthContext: () => ({}) }) as unknown as LinkCall;
  new NodeLinkSession(call, parts, new Map());
  const hello = { node: "gpu-1", bootId: uuidv7(systemClock), agentVersion: "0", slots: [] };
  call.emit("data", { message: { $case: "hello", value: hello } });
  expect(refused).toEqual(["name"]);
});
