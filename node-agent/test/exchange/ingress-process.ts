/** The ingress in a separate process, so that the work of its event loop can be measured. */
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { measureLoopWork } from "@weiche/shared/testing/loop-work.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { FrameStream } from "@weiche/shared/frames/frame-stream.ts";
import { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { readRecord } from "@weiche/shared/node-protocol.ts";
import { dialects } from "../../src/engines/dialects/all.ts";
import { EngineLife } from "../../src/engines/engine-life.ts";
import { Ingress } from "../../src/exchange/ingress.ts";
import { chatRules } from "./ingress-rig.ts";
import { SimulatedOutbox, SimulatedSlot } from "./simulated-slot.ts";

const slot = new SimulatedSlot({ origin: process.argv[2]! }, "vllm");
const bugs: unknown[] = [];
const ingress = new Ingress({
  admissions: slot,
  rules: () => ({ ...chatRules, images: { max: 4, formats: ["png"] } }),
  outbox: new SimulatedOutbox(),
  unsettled: { finished() {} },
  dialects,
  clock: systemClock,
  life: new EngineLife(systemClock),
  requestMsMax: 600_000,
  events: {
    requestEnded() {},
    engineFault: (...fault) => bugs.push(fault),
    engineShortfall() {},
    unknownFinish() {},
    requestBug: (error) => bugs.push(error),
  },
});

const server = createServer((socket) => {
  const take = (stream: FrameStream, record: string) => ingress.handle(stream, readRecord(record));
  new FrameConnection(socket, { clock: systemClock, take, closed() {} });
}).listen(0, "127.0.0.1");
await once(server, "listening");

const workMs = measureLoopWork();
process.on("message", () => {
  process.send!({ workMs: workMs(), bugs: bugs.map(String), rssBytes: process.resourceUsage().maxRSS * 1024 });
});
process.on("disconnect", () => process.exit());
process.send!({ port: (server.address() as AddressInfo).port });
