import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { expect, test } from "vitest";
import type { EngineEndpoint, EngineSpec } from "./engine.ts";
import { EngineWindows } from "./engine-windows.ts";

const slot = asId<SlotName>("a");
const model = asId<ModelId>("m");
const chat: ModelRules = {
  ...{ id: model, category: "language", contextTokens: 4_096, toolsEnforced: true },
  reasoning: { mode: "unavailable", efforts: [], templateKwargsAccepted: true },
};
const embeds: ModelRules = {
  ...chat,
  category: "embeddings",
  embeddings: { dimensions: { min: 2, max: 64, default: 64 }, inputTokens: 512 },
};

function watched() {
  const told: number[][] = [];
  const windows = new EngineWindows({
    engineWindow: (_slot, _model, has, promised) => told.push([has, promised]),
    engineSharesContext: (_slot, _model, slots, used) => told.push([slots, used]),
  });
  const compare = (endpoint: EngineEndpoint, rules?: ModelRules) =>
    windows.compare([{ slot, spec: { model } as EngineSpec, endpoint }], new Map(rules ? [[model, rules]] : []));
  return { told, compare };
}

test("an engine is compared once with each promised window, and the engine that replaces it is compared again", () => {
  const { told, compare } = watched();
  const endpoint = { origin: "http://127.0.0.1:1", windowTokens: 2_048 };
  compare(endpoint, chat);
  compare(endpoint, chat);
  expect(told).toEqual([[2_048, 4_096]]);
  compare(endpoint, { ...chat, contextTokens: 2_048 });
  compare({ ...endpoint }, { ...chat, contextTokens: 2_048 });
  expect(told.slice(1)).toEqual([
    [2_048, 2_048],
    [2_048, 2_048],
  ]);
});

test("an embedding model is compared by the length of one text", () => {
  const { told, compare } = watched();
  compare({ origin: "http://127.0.0.1:1", windowTokens: 256 }, embeds);
  expect(told).toEqual([[256, 512]]);
});

test("an engine without a reported window is not compared, nor any engine before the rules are known", () => {
  const { told, compare } = watched();
  compare({ origin: "http://127.0.0.1:1" }, chat);
  const endpoint = { origin: "http://127.0.0.1:1", windowTokens: 256 };
  compare(endpoint);
  expect(told).toEqual([]);
  compare(endpoint, chat);
  expect(told).toEqual([[256, 4_096]]);
});

test("an engine whose slots share a context is reported once, even before the rules are known", () => {
  const { told, compare } = watched();
  const endpoint = { origin: "http://127.0.0.1:1", windowTokens: 4_096, parallelMax: 1, sharedSlots: 4 };
  compare(endpoint);
  compare(endpoint);
  expect(told).toEqual([[4, 1]]);
  compare({ ...endpoint });
  expect(told).toHaveLength(2);
});
