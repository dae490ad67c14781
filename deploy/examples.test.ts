/** The example files for operators are valid, and agree with each other. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadAgentConfig } from "../node-agent/src/config/config.ts";
import { servedBy } from "../node-agent/src/engines/engine.ts";
import { loadCatalogue, loadRouterConfig } from "../router/src/config/config.ts";
import { createClientAddress } from "../router/src/edge/client-address.ts";

const here = import.meta.dirname;

describe.each([
  ["production", here],
  ["npm start", join(here, "demo")],
  ["one host", join(here, "examples/one-host")],
])("the examples for %s", (_name, folder) => {
  const agent = () => loadAgentConfig(join(folder, "agent.yaml"), {});
  const router = () => loadRouterConfig(join(folder, "router.yaml"), {});

  test("have no mistakes", () => {
    expect(router().catalogueFile).toBe(join(folder, "catalogue.yaml"));
    expect(() => createClientAddress(router().limits.trustedProxies)).not.toThrow();
    expect(agent().slots.length).toBeGreaterThan(0);
  });

  test("serve exactly the catalogue's models, each once", () => {
    const served = agent().slots.flatMap(({ engines }) => engines.map(({ model }) => model));
    expect(served.toSorted()).toEqual([...loadCatalogue(router().catalogueFile).catalogue.keys()].toSorted());
  });
});

test("the example of an engine with LoRA adapters is read without a mistake, and serves all of its models", () => {
  const [slot] = loadAgentConfig(join(here, "examples/agent-lora.yaml"), {}).slots;
  expect(slot!.engines.flatMap(servedBy)).toEqual(["small-24b", "small-24b-sql", "small-24b-letters"]);
});

describe("vLLM in deploy/agent.yaml", () => {
  const { catalogue } = loadCatalogue(join(here, "catalogue.yaml"));
  const engines = loadAgentConfig(join(here, "agent.yaml"), {}).slots.flatMap((slot) => slot.engines);

  test.each(engines.map((engine) => [engine.model, engine] as const))(
    "%s has a command that matches its catalogue entry",
    (model, engine) => {
      const { launcher, sleepLevel, maxConcurrent } = engine;
      const { command, env } = launcher as Extract<typeof launcher, { kind: "process" }>;
      const { contextTokens, category, reasoning } = catalogue.get(model)!;
      expect(command).toContain(`--served-model-name=${model}`);
      expect(command).toContain(`--max-model-len=${contextTokens}`);
      expect(command).toContain(`--max-num-seqs=${maxConcurrent}`);
      expect(command.includes("--enable-sleep-mode")).toBe(sleepLevel !== undefined);
      expect(env["VLLM_SERVER_DEV_MODE"]).toBe(sleepLevel === undefined ? undefined : "1");
      const has = (flag: string) => command.some((part) => part.startsWith(`${flag}=`));
      const chats = category !== "embeddings";
      expect([has("--tool-call-parser"), command.includes("--enable-auto-tool-choice")]).toEqual([chats, chats]);
      expect(has("--reasoning-parser")).toBe(reasoning !== undefined && reasoning.mode !== "unavailable");
    },
  );
});
