import { expect, test } from "vitest";
import { reportEveryMs } from "@weiche/node-agent/src/links/load.ts";
import { asId, type AccountId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { NodeRegistry } from "../../nodes/registry.ts";
import { EventQueue } from "./event-queue.ts";
import { TimedNode } from "./timed-node.ts";
import type { TimedSlotOptions } from "./timed-slot.ts";

const model = asId<ModelId>("m");
const limits: TimedSlotOptions["limits"] = {
  ...{ minResidencyMs: 1_000, drainOpenMsMax: 10_000, waitersMax: 512, waiterMsMax: 300_000 },
  ...{ backoffMsMin: 0, backoffMsMax: 0, startMsMax: Infinity, stopMsMax: Infinity, whileSwitching: "hold" },
};

test.each([1, 50, 1_000, 5_000])(
  "a router that asks rarely knows what the node reported, when reports take %i ms",
  (newsMs) => {
    const random = createRandom(1);
    const clock = new EventQueue();
    const engine = { model, places: 64, startMs: 0, stopMs: 0, prefillTokensPerSecond: 1e9, cacheTokens: Infinity };
    const step = { baseMs: 10, perRunningMs: 0, perTokenMs: 0 };
    const slot = { name: asId<SlotName>("a"), engines: [{ ...engine, step }], limits, awake: model };
    const node = new TimedNode(asId<NodeId>("n"), [slot], newsMs, clock);
    const registry = new NodeRegistry();
    const phaseMs = 300;
    node.linkTo(0, registry, phaseMs);
    const view = () => registry.view(clock.monotonicMs())[0]!;
    expect(view().reportedAtMs, "no report comes from the future").toBeLessThanOrEqual(0);
    /** What runs at each report, and since when nothing runs. */
    const reported: { readonly running: number; readonly idleSinceMs: number | undefined }[] = [];
    const record = () => {
      const running = node.slots[0]!.held.reduce((sum, places) => sum + places, 0);
      const last = reported.at(-1);
      const arrivedMs = phaseMs + reported.length * reportEveryMs + newsMs;
      reported.push({ running, idleSinceMs: running > 0 ? undefined : (last?.idleSinceMs ?? arrivedMs) });
    };
    for (let n = 0; n < 300; n++) clock.after(phaseMs + n * reportEveryMs, record);
    const nothing = () => {};
    const ask = (atMs: number, outputTokens: number) =>
      clock.after(atMs, () =>
        node.slots[0]!.ask({
          ...{ model, account: asId<AccountId>("x"), inputTokens: 1, outputTokens },
          ...{ router: 0, admitted: nothing, refused: nothing, ended: nothing },
        }),
      );
    ask(20_000, 300);
    for (let n = 0; n < 200; n++) ask(25_000 + random.next() * 250_000, Math.ceil(random.next() * 100));
    for (let n = 0; n < 100; n++)
      clock.after(30_000 + random.next() * 260_000, () => {
        node.refresh(0);
        const { running, idleSinceMs } = view().slots[0]!;
        const newest = Math.floor((clock.monotonicMs() - newsMs - phaseMs) / reportEveryMs);
        expect({ running, idleSinceMs }).toEqual(reported[newest]);
      });
    while (clock.step());
  },
);
