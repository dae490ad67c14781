import { describe, expect, test } from "vitest";
import { LinkRequest } from "@weiche/proto/weiche/node/v1/node_control.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { NodeLoad } from "./load.ts";
import { loadReport } from "./load.ts";
import { WireState } from "../slots/slot-view.ts";

const slot = asId<SlotName>("a");
const model = asId<ModelId>("m");
const nothing: NodeLoad = {
  slots: [
    {
      ...{ name: slot, models: [model], state: WireState.EMPTY, running: 0, runningByRouter: new Map(), waiting: 0 },
      ...{ waiters: [], stateAgeMs: 12.6, sleepers: [] },
    },
  ],
  engines: new Map(),
  maintenance: false,
  admitting: true,
};

/** The report as the router gets it. */
function received(load: NodeLoad) {
  const sent = { $case: "loadReport", value: loadReport(load, "router-1", 1n) } as const;
  const { message } = LinkRequest.decode(LinkRequest.encode({ message: sent }).finish());
  if (message?.$case !== "loadReport") throw new Error("no report");
  return message.value;
}

describe("a load report on the wire", () => {
  test("has no value of what is not measured, not even a 0", () => {
    const { host, slots } = received(nothing);
    expect(host).toBeUndefined();
    const { activeModel, nextModel, oldestRunningMs, closesInMs, maxConcurrent, engine, retryInMs } = slots[0]!;
    expect([activeModel, nextModel, oldestRunningMs, closesInMs, maxConcurrent, engine, retryInMs]).toEqual(
      Array(7).fill(undefined),
    );
  });

  test("of a host without GPUs has no GPU; of one that measures little, little", () => {
    const memoryTotalBytes = 2 ** 40;
    expect(received({ ...nothing, host: { memoryTotalBytes } }).host).toEqual({
      ...{ memoryTotalBytes: BigInt(memoryTotalBytes), memoryAvailableBytes: undefined, cpuUse: undefined, gpus: [] },
    });
    const { host } = received({ ...nothing, gpus: [{ index: 1, uuid: "GPU-1", temperatureCelsius: 0 }] });
    expect(host!.gpus).toEqual([
      {
        ...{ index: 1, temperatureCelsius: 0, memoryTotalBytes: undefined, memoryUsedBytes: undefined },
        ...{ utilisation: undefined, powerWatts: undefined },
      },
    ]);
  });

  test("has what is measured, a 0 too, in whole numbers where the wire wants them", () => {
    const engines = new Map([[slot, { running: 0, kvCacheUse: 0 }]]);
    const [view] = nothing.slots;
    const waiters = [{ model, waiting: 2 }];
    const slots = [
      { ...view!, state: WireState.DRAINING_OPEN, activeModel: model, waiters, closesInMs: -3, oldestRunningMs: 1.4 },
    ] as const;
    expect(received({ ...nothing, slots, engines }).slots[0]).toMatchObject({
      ...{ activeModel: model, waiters: [{ model, waiting: 2 }], closesInMs: 0, oldestRunningMs: 1, stateAgeMs: 13 },
      engine: { running: 0, kvCacheUse: 0, waiting: undefined },
    });
  });
});
