/** The models of an engine in agent.yaml, which has one `model` or several `models`. */
import type { RawEngine } from "./config-schema.ts";

export function modelsOf({ model, models = [] }: RawEngine): readonly string[] {
  return model === undefined ? models : [model];
}

/** Returns the first model, which names the engine. */
export function nameOf(engine: RawEngine): string {
  return modelsOf(engine)[0] ?? "";
}
