import { beforeEach, expect, test } from "vitest";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import {
  failureLinesMax,
  failureReasonMax,
  failuresPerSlotMax,
  failureWordsMax,
} from "@weiche/shared/wire/link-bounds.ts";
import { EngineFailures } from "./engine-failures.ts";

const slot = asId<SlotName>("a");
const [chat, code] = [asId<ModelId>("chat"), asId<ModelId>("code")];
let clock: VirtualClock;
let failures: EngineFailures;

beforeEach(() => {
  clock = new VirtualClock();
  failures = new EngineFailures(clock);
});

const known = () => (failures.all.get(slot) ?? []).map(({ model, reason }) => `${model}: ${reason}`);
const minutes = (count: number) => clock.advance(count * 60_000);

test("a failure stays until its engine has been ready for ten minutes, whatever other engines do", () => {
  failures.failed(slot, chat, "start", "exit code 1");
  failures.ready(slot, code);
  minutes(60);
  expect(known()).toEqual(["chat: exit code 1"]);
  failures.ready(slot, chat);
  minutes(9);
  failures.ready(slot, chat);
  expect(known()).toEqual(["chat: exit code 1"]);
  minutes(1);
  expect(known()).toEqual([]);
});

test("an engine that fails again within ten minutes keeps its newest failure", () => {
  failures.failed(slot, chat, "exit", "first");
  failures.ready(slot, chat);
  minutes(5);
  failures.failed(slot, chat, "exit", "second");
  minutes(60);
  expect(known()).toEqual(["chat: second"]);
});

test("an acknowledged failure is forgotten, and a later one is shown, also if the host's clock was set back", () => {
  failures.failed(slot, chat, "start", "first");
  failures.failed(slot, code, "start", "second");
  const [first, second] = failures.all.get(slot)!.map(({ number }) => number);
  failures.acknowledge(first!);
  expect(known()).toEqual(["code: second"]);
  failures.acknowledge(second! + 1_000_000n);
  expect(known()).toEqual([]);
  failures.failed(slot, chat, "start", "third");
  failures.acknowledge(second! + 1_000_000n);
  expect(known()).toEqual(["chat: third"]);
});

test("the reason has the line of the output that explains it, and lines are cut, plain and from this start alone", () => {
  const lines = ["loading", "\u001b[31mCUDA error: out of memory\u001b[0m", "x".repeat(1_000)];
  failures.said(slot, [...Array.from({ length: 50 }, (_, n) => `${n}`), ...lines]);
  failures.failed(slot, chat, "start", "exit code 1");
  const [failure] = failures.all.get(slot)!;
  expect(failure!.reason).toMatch(/^exit code 1: .*CUDA error: out of memory/);
  expect(failure!.lines).toHaveLength(failureLinesMax);
  expect(failure!.lines.at(-1)).toHaveLength(failureWordsMax);
  expect([failure!.reason, ...failure!.lines].join("")).not.toMatch(/\p{Cc}/u);
  failures.failed(slot, chat, "exit", "y".repeat(1_000));
  expect(failures.all.get(slot)).toMatchObject([{ reason: expect.stringMatching(/^y+…$/), lines: [] }]);
  expect(failures.all.get(slot)![0]!.reason).toHaveLength(failureReasonMax);
});

test("a slot keeps the failures of its last models, and the list is the same object until one changes", () => {
  const models = Array.from({ length: failuresPerSlotMax + 1 }, (_, n) => asId<ModelId>(`m${n}`));
  for (const model of models) failures.failed(slot, model, "start", "x");
  expect(failures.all.get(slot)!.map(({ model }) => model)).toEqual(models.slice(1));
  expect(failures.all.get(slot)).toBe(failures.all.get(slot));
});
