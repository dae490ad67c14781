import { expect, test } from "vitest";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { WireState, type SlotView } from "../slots/slot-view.ts";
import { loadReport } from "./load.ts";

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
