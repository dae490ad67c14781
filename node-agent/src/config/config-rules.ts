/** Finds mistakes in an agent.yaml whose keys are each valid. Pure: the checks depend only on the values. */
import type { Finding } from "@weiche/shared/files/config-file.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { parseListen } from "@weiche/shared/http/listen.ts";
import type { RawAgent, RawEngine } from "./config-schema.ts";
import { enginesPerSlotMax, modelsMax } from "@weiche/shared/wire/link-bounds.ts";
import { commandMistakes } from "./engine-command-rules.ts";
import { modelsOf, nameOf } from "./engine-models.ts";
import { engineName } from "../engines/engine-name.ts";

type Slot = RawAgent["slots"][number];

const neededKey = { process: "command", systemd: "unit", external: "url" } as const;

export function* contradictions(config: RawAgent): Iterable<Finding> {
  yield* address(["listen", "ops"], config.listen.ops);
  for (const [index, router] of (config.routers ?? []).entries()) yield* address(["routers", index], router);
  const names = config.slots.map(({ name }, index) => ({ key: name, path: ["slots", index, "name"] }));
  yield* doubles(names, (name) => `slot "${name}" is listed twice`);
  for (const [index, slot] of config.slots.entries()) yield* inSlot(slot, ["slots", index]);
  yield* sameNames(config.slots);
  const models = new Set(config.slots.flatMap(({ engines }) => engines.flatMap(modelsOf))).size;
  if (models > modelsMax)
    yield [["slots"], `a node serves at most ${modelsMax} models, and these slots name ${models}`];
}

function* inSlot(slot: Slot, path: Finding[0]): Iterable<Finding> {
  const gpus = slot.gpus.map((gpu, index) => ({ key: gpu, path: [...path, "gpus", index] }));
  yield* doubles(gpus, (gpu) => `slot "${slot.name}" lists GPU ${gpu} twice`);
  const { min, max } = slot.backoffSeconds;
  if (min > max) yield [[...path, "backoffSeconds", "min"], `slot "${slot.name}": backoffSeconds.min exceeds .max`];
  yield* modelsTwice(slot, path);
  for (const [index, engine] of slot.engines.entries()) {
    for (const [at, message] of inEngine(engine)) {
      yield [[...path, "engines", index, ...at], `slot "${slot.name}", model "${nameOf(engine)}": ${message}`];
    }
  }
}

/** A slot must have one engine for each model. */
function* modelsTwice(slot: Slot, path: Finding[0]): Iterable<Finding> {
  const all = slot.engines.flatMap((engine, index) =>
    modelsOf(engine).map((model, at) => {
      const key = engine.models && engine.model === undefined ? ["models", at] : ["model"];
      return { key: model, path: [...path, "engines", index, ...key] };
    }),
  );
  if (all.length > enginesPerSlotMax)
    yield [[...path, "engines"], `slot "${slot.name}" has ${all.length} models, at most ${enginesPerSlotMax} fit`];
  yield* doubles(all, (model) => `slot "${slot.name}" lists model "${model}" twice`);
}

function* inEngine(engine: RawEngine): Iterable<Finding> {
  const { launcher, command, url, unit } = engine;
  if (engine.model !== undefined && engine.models) yield [["models"], `name "model" or "models", not both`];
  if (modelsOf(engine).length === 0) yield [[], `"model" is missing, or "models" for several`];
  const needed = neededKey[launcher];
  if (engine[needed] === undefined) yield [["launcher"], `launcher ${launcher} needs "${needed}"`];
  else if (launcher === "process" && !/\{(port|socket)\}/.test(command!.join(" ")))
    yield [["command"], "the command contains neither {port} nor {socket}, so no request could reach the engine"];
  else if (launcher === "systemd" && !/^[^@/]+@(\.service)?$/.test(unit!))
    yield [["unit"], `unit "${unit}" is not a template such as weiche-engine@.service`];
  else if (launcher === "external" && !/^https?:$/.test(URL.parse(url!)?.protocol ?? ""))
    yield [["url"], `url "${url}" is not http://host:port`];
  if (engine.sleep && engine.dialect !== "vllm") yield [["sleep"], "only dialect vllm can sleep"];
  yield* commandMistakes(engine);
}

function* doubles(
  listed: readonly { readonly key: string | number; readonly path: Finding[0] }[],
  describe: (key: string | number) => string,
): Iterable<Finding> {
  const seen = new Set<string | number>();
  for (const { key, path } of listed) {
    if (seen.has(key)) yield [path, describe(key)];
    seen.add(key);
  }
}

/** Slot `a` with model `b-c` and slot `a-b` with model `c` would share their files, sockets and units. */
function* sameNames(slots: readonly Slot[]): Iterable<Finding> {
  const owners = new Map<string, Slot>();
  for (const [index, slot] of slots.entries()) {
    for (const [at, engine] of slot.engines.entries()) {
      const name = engineName(asId<SlotName>(slot.name), asId<ModelId>(nameOf(engine)));
      const owner = owners.get(name) ?? slot;
      const message = `slots "${owner.name}" and "${slot.name}" both make the engine name "${name}": rename one`;
      if (owner.name !== slot.name)
        yield [["slots", index, "engines", at, engine.model === undefined ? "models" : "model"], message];
      owners.set(name, owner);
    }
  }
}

function* address(path: Finding[0], text: string): Iterable<Finding> {
  try {
    parseListen(text, path.join("."));
  } catch (error) {
    yield [path, (error as Error).message];
  }
}
