import { describe, expect, test } from "vitest";
import { LinkRequest, LoadReport, type Hello } from "@weiche/proto/weiche/node/v1/node_control.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import {
  batchRecordsMax,
  enginesPerSlotMax,
  linkRequestBounds,
  modelCharactersMax,
  modelsMax,
  slotsMax,
} from "@weiche/shared/wire/link-bounds.ts";
import { measureMessage } from "@weiche/shared/wire/message-bounds.ts";
import type { Machine, MachineReading } from "@weiche/shared/machine.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { EngineFailures } from "../slots/engine-failures.ts";
import { SwitchHistory } from "../slots/switch-history.ts";
import { WireState, type SlotView } from "../slots/slot-view.ts";
import { loadReport, type NodeLoad } from "./load.ts";
import { encodeRecord } from "./router-link-codec.ts";

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

test("a report counts the running requests of its own router, and omits values that are not measured", () => {
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

/** Returns the report as the router gets it. */
function received(load: NodeLoad) {
  const sent = { $case: "loadReport", value: loadReport(load, "router-1", 1n) } as const;
  const { message } = LinkRequest.decode(LinkRequest.encode({ message: sent }).finish());
  if (message?.$case !== "loadReport") throw new Error("no report");
  return message.value;
}

describe("a load report on the wire", () => {
  test("omits values that are not measured, instead of sending 0", () => {
    const { host, slots } = received(nothing);
    expect(host).toBeUndefined();
    const { activeModel, nextModel, oldestRunningMs, closesInMs, maxConcurrent, engine, retryInMs } = slots[0]!;
    expect([activeModel, nextModel, oldestRunningMs, closesInMs, maxConcurrent, engine, retryInMs]).toEqual(
      Array(7).fill(undefined),
    );
  });

  test("of a host without GPUs contains no GPU, and omits what the host does not measure", () => {
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

  test("contains all measured values, including 0, in whole numbers where the protocol requires them", () => {
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

  test("is sent once, and again when it changes", () => {
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

  test("that can no longer be read is an empty message, which is not absent", () => {
    const sent = { $case: "loadReport", value: loadReport(nothing, "r", 2n, { reading }) } as const;
    const { message } = LinkRequest.decode(LinkRequest.encode({ message: sent }).finish());
    const { machine: none, machineReading } = (message as typeof sent).value;
    expect(none).toBeUndefined();
    expect(JSON.parse(JSON.stringify(machineReading))).toEqual({ fileSystems: [], temperatures: [] });
  });

  test("omits values that are not measured, and is ignored by a router that does not know it", () => {
    expect(received({ ...nothing, reading }).machineReading).toMatchObject({ loadAverage1: 0, swapUsedBytes: 0n });
    expect(received({ ...nothing, reading }).machineReading!.swapTotalBytes).toBeUndefined();
    expect(received(nothing).machine).toBeUndefined();
    // To an older router the machine is an unknown field, like field 99 to this decoder.
    const known = LoadReport.encode(loadReport({ ...nothing, maintenance: true }, "r", 7n)).finish();
    const later = Buffer.concat([known, Buffer.from([0x9a, 0x06, 2, 0x08, 1])]);
    expect(LoadReport.decode(later)).toEqual(LoadReport.decode(known));
  });
});

test("past switches are sent once with their age, and again when there is a new one", () => {
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

test("failures of engines are sent when they have changed, also when none is left", () => {
  const [{ name: slot } = view(chat)] = nothing.slots;
  const failure = { number: 7n, atMs: 1_000, model, kind: "start", reason: "exit code 1", lines: ["x"] } as const;
  const load = { ...nothing, failures: { of: new Map([[slot, [failure]]]), nowMs: 3_000.4 } };
  const sent = (next: NodeLoad, told?: NodeLoad) => loadReport(next, "router-1", 1n, told).slots[0]!.failures;
  expect(sent(load)!.failures).toEqual([
    { number: 7n, agoMs: 2_000, model, kind: "start", reason: "exit code 1", lines: ["x"] },
  ]);
  expect(sent({ ...load, failures: { ...load.failures, nowMs: 4_000 } }, load)).toBeUndefined();
  expect(sent({ ...load, failures: { of: new Map([[slot, []]]), nowMs: 4_000 } }, load)).toEqual({ failures: [] });
});

/** The largest values that agent.yaml allows, all at once, on a host with more parts than any real one. */
describe("the largest agent that can be configured keeps to the limits of the link:", () => {
  const models = Array.from({ length: modelsMax }, (_, n) => asId<ModelId>(`${n}`.padStart(modelCharactersMax, "m")));
  const names = Array.from({ length: slotsMax }, (_, n) => asId<SlotName>(`${n}`.padStart(63, "s")));
  const bytesMax = 4 << 20;

  /** Returns what exceeds a limit, or undefined. */
  function mistakeIn(message: LinkRequest["message"]): string | undefined {
    const bytes = LinkRequest.encode({ message }).finish();
    const measured = measureMessage(bytes, linkRequestBounds);
    return bytes.length > bytesMax ? `${bytes.length} bytes` : "mistake" in measured ? measured.mistake : undefined;
  }

  test("its hello", () => {
    const slots: Hello["slots"] = names.map((name) => {
      const all = models.slice(0, enginesPerSlotMax);
      return { name, models: all, engines: all };
    });
    expect(
      mistakeIn({
        $case: "hello",
        value: { node: "n".repeat(63), bootId: "b".repeat(36), agentVersion: "0.1.0", slots },
      }),
    ).toBeUndefined();
  });

  test("its first report, with waiters for every model in every slot [D10]", () => {
    const history = new SwitchHistory({ monotonicMs: () => 0 });
    for (const name of names) for (let n = 0; n < 60; n++) history.startFailed(name, models[0]!);
    const failures = new EngineFailures(new VirtualClock());
    for (const name of names)
      for (const each of models.slice(0, 8)) {
        failures.said(
          name,
          Array.from({ length: 50 }, () => "ﬀ".repeat(1_000)),
        );
        failures.failed(name, each, "suspected", "ﬀ".repeat(1_000));
      }
    const slots = names.map((name) => ({
      ...view(name),
      models: models.slice(0, enginesPerSlotMax),
      activeModel: models[0]!,
      nextModel: models[1]!,
      waiters: models.slice(0, enginesPerSlotMax).map((each) => ({ model: each, waiting: 2 ** 32 - 1 })),
    }));
    const word = "ž".repeat(300);
    const parts = <Part>(part: Part) => Array.from({ length: 600 }, () => part);
    const gpu = { index: 1, uuid: "", memoryTotalBytes: 2 ** 40, memoryUsedBytes: 2 ** 40, utilisation: 1 };
    const machine: Machine = {
      ...{ manufacturer: word, model: word, processor: word, operatingSystem: word, kernel: word },
      memoryModules: parts({ sizeBytes: 2 ** 40, type: word }),
      disks: parts({ name: word, sizeBytes: 2 ** 50, kind: word, model: word }),
      networkInterfaces: parts({ name: word, up: true, bitsPerSecond: 2 ** 40 }),
      gpus: parts({ busAddress: word, vendor: word, name: word, driver: word }),
    };
    const fileSystem = { mount: word, holds: ["models", "state", "outbox"] as const, sizeBytes: 1, availableBytes: 1 };
    const reading = { fileSystems: parts(fileSystem), temperatures: parts({ part: "cpu", celsius: 99.5 }) };
    const load: NodeLoad = {
      ...{ slots, engines: new Map(names.map((name) => [name, { kvCacheUse: 0.5, running: 1 }])) },
      ...{ past: { of: history.all, nowMs: 0 }, failures: { of: failures.all, nowMs: 0 } },
      ...{ outbox: { records: 2 ** 40 }, gpus: parts(gpu) },
      ...{ machine, reading: reading as unknown as MachineReading, maintenance: true, admitting: true },
    };
    expect(mistakeIn({ $case: "loadReport", value: loadReport(load, "router-1", 2n ** 63n) })).toBeUndefined();
  });

  test("a full batch of its backlog", () => {
    const id = "0190f3c5-7a00-7000-8000-000000000001";
    const record = encodeRecord({
      ...{ requestId: asId(id), attempt: 2, accountId: asId(id), userId: asId(id), keyId: asId(id), model: models[0]! },
      ...{ factor: (10n ** 12n) as never, promptTokens: 2 ** 31, completionTokens: 2 ** 31, reasoningTokens: 2 ** 31 },
      ...{ cachedTokens: 2 ** 31, source: "engine", outcome: "finished", durationMs: 600_000, firstTokenMs: 600_000 },
      ...{ grant: "q83vEjRWeJCrze8SNFZ4kA", tokensMax: 2 ** 40 },
    });
    const records = Array.from({ length: batchRecordsMax }, () => record);
    expect(mistakeIn({ $case: "usageBatch", value: { batchId: 2n ** 63n, records } })).toBeUndefined();
  });
});

test("every time of a report is a whole number, as the protocol requires", () => {
  const past = {
    model,
    endedAtMs: 0.5,
    report: { model, from: model, tookMs: 1.5, phasesMs: { drain: 0.5, probe: 1.5 } },
  };
  const slots: SlotView[] = [
    {
      ...view(chat),
      ...{ oldestRunningMs: 1.5, closesInMs: 2.5, stateAgeMs: 3.5, retryInMs: 4.5, oldestWaitingMs: 5.5 },
      waiters: [{ model, waiting: 1, nextServedMs: 6.5, lastServedMs: 7.5 }],
      switching: { ageMs: 8.5, phase: "start", usualMs: 9.5 },
    },
  ];
  const load = { ...nothing, slots, past: { of: new Map([[chat, [past]]]), nowMs: 10.7 } };
  const numbers: number[] = [];
  JSON.stringify(loadReport(load, "router-1", 1n).slots, (_key, value: unknown) => {
    if (typeof value === "number") numbers.push(value);
    return value;
  });
  expect(numbers.filter((number) => !Number.isInteger(number))).toEqual([]);
  expect(numbers.length).toBeGreaterThan(14);
});
