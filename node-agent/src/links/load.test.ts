import { describe, expect, test } from "vitest";
import { LinkRequest, LoadReport } from "@weiche/proto/weiche/node/v1/node_control.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { WireState, type SlotView } from "../slots/slot-view.ts";
import { loadReport, type NodeLoad } from "./load.ts";

const [chat, other] = [asId<SlotName>("chat"), asId<SlotName>("other")];
const model = asId<ModelId>("m");
const view = (name: SlotName): SlotView => ({
  name,
  models: [model],
  state: WireState.ACTIVE,
  activeModel: model,
  running: 5,
  runningByRouter: new Map([
    ["router-1", 3],
    ["router-2", 2],
  ]),
  waiting: 0,
  waiters: [],
  stateAgeMs: 1,
  sleepers: [],
});

test("a report says how many of the running requests are the reader's own, and what is not measured is absent", () => {
  const load = {
    slots: [view(chat), view(other)],
    engines: new Map([[chat, { kvCacheUse: 0.25 }]]),
    maintenance: false,
    admitting: true,
  };
  expect(loadReport(load, "router-1", 1n).slots).toMatchObject([
    { name: "chat", running: 5, runningOfRouter: 3, engine: { kvCacheUse: 0.25 } },
    { name: "other", running: 5, runningOfRouter: 3 },
  ]);
  expect(loadReport(load, "router-3", 1n).slots[0]).toMatchObject({ running: 5, runningOfRouter: 0 });
  expect(loadReport(load, "router-1", 1n).slots[1]!.engine).toBeUndefined();
  expect(loadReport(load, "router-1", 1n).host).toBeUndefined();
  const gpus = [{ index: 0, uuid: "GPU-0", memoryUsedBytes: 7 }];
  expect(loadReport({ ...load, gpus }, "router-1", 1n).host).toMatchObject({
    gpus: [{ index: 0, memoryUsedBytes: 7n }],
  });
});

const slot = asId<SlotName>("a");
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

describe("the machine in load reports", () => {
  const machine = {
    kernel: "6.8",
    memoryModules: [{ sizeBytes: 2 ** 36 }],
    disks: [],
    networkInterfaces: [],
    gpus: [],
  };
  const reading = { loadAverage1: 0, swapUsedBytes: 0.4, fileSystems: [], temperatures: [] };

  test("is told once, and again when it is another one", () => {
    const load = { ...nothing, machine, reading };
    expect(loadReport(load, "r", 1n).machine).toMatchObject({
      kernel: "6.8",
      memoryModules: [{ sizeBytes: 2n ** 36n }],
    });
    const again = loadReport(load, "r", 2n, load);
    expect([again.machine, again.machineReading]).toEqual([undefined, undefined]);
    const next = loadReport({ ...load, reading: { ...reading, loadAverage1: 2 } }, "r", 3n, load);
    expect([next.machine, next.machineReading?.loadAverage1]).toEqual([undefined, 2]);
  });

  test("that cannot be read any more is a message without fields, which is not absent on the wire", () => {
    const sent = { $case: "loadReport", value: loadReport(nothing, "r", 2n, { reading }) } as const;
    const { message } = LinkRequest.decode(LinkRequest.encode({ message: sent }).finish());
    const { machine: none, machineReading } = (message as typeof sent).value;
    expect(none).toBeUndefined();
    expect(JSON.parse(JSON.stringify(machineReading))).toEqual({ fileSystems: [], temperatures: [] });
  });

  test("has no value of what is not measured, and is passed over by a router that does not know it", () => {
    expect(received({ ...nothing, reading }).machineReading).toMatchObject({ loadAverage1: 0, swapUsedBytes: 0n });
    expect(received({ ...nothing, reading }).machineReading!.swapTotalBytes).toBeUndefined();
    expect(received(nothing).machine).toBeUndefined();
    // To an older router, the machine is what field 99 is to this decoder: a message that it was never told of.
    const known = LoadReport.encode(loadReport({ ...nothing, maintenance: true }, "r", 7n)).finish();
    const later = Buffer.concat([known, Buffer.from([0x9a, 0x06, 2, 0x08, 1])]);
    expect(LoadReport.decode(later)).toEqual(LoadReport.decode(known));
  });
});

test("past switches go with a report once, dated by their age, and again when there is another one", () => {
  const report = { from: model, model, tookMs: 9_400.4, phasesMs: { drain: 5_000, start: 4_400.4 } };
  const first = new Map([[slot, [{ endedAtMs: 1_000, model, report }]]]);
  const load = { ...nothing, past: { of: first, nowMs: 61_000 } };
  const history = (next: NodeLoad, told?: NodeLoad) => loadReport(next, "router-1", 1n, told).slots[0]!.history;
  expect(history(load)!.switches).toMatchObject([
    { endedAgoMs: 60_000, fromModel: model, model, failed: false, tookMs: 9_400, drainMs: 5_000, startMs: 4_400 },
  ]);
  expect(history({ ...load, past: { of: new Map(first), nowMs: 62_000 } }, load)).toBeUndefined();
  const second = new Map([[slot, [...first.get(slot)!, { endedAtMs: 62_000, model }]]]);
  const more = history({ ...load, past: { of: second, nowMs: 62_000 } }, load)!.switches;
  expect(more.map(({ failed, endedAgoMs }) => [failed, endedAgoMs])).toEqual([
    [false, 61_000],
    [true, 0],
  ]);
});
