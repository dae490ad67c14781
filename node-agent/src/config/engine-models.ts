/** The models of an engine of agent.yaml, which names one by `model` or several by `models`. */
import type { RawEngine } from "./config-schema.ts";

export function modelsOf({ model, models = [] }: RawEngine): readonly string[] {
  return model === undefined ? models : [model];
}

/** The first model, which names the engine. */
export function nameOf(engine: RawEngine): string {
  return modelsOf(engine)[0] ?? "";
}
