/** The proxy of LiteLLM with one worker, no database and the engine as its OpenAI-style provider. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { ofSystem, peer } from "./child.ts";

export const litellm = peer({
  ...{
    name: "litellm",
    what: "AI gateway on Python, one worker: translates between providers and checks one master key; without a database it limits and records nothing",
  },
  ...ofSystem("litellm", "--version"),
  install: "Python with venv, then the bench installs it",
  // Without the first variable, LiteLLM downloads a price list at each start.
  env: { LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR" },
  headers: () => "authorization: Bearer sk-any\r\n",
  configure(port, { port: engine, model, directory }) {
    const file = join(directory, "litellm.yaml");
    const provider = { model: `openai/${model}`, api_base: `http://127.0.0.1:${engine}/v1`, api_key: "any" };
    const models = [{ model_name: model, litellm_params: provider }];
    writeFileSync(file, stringify({ model_list: models, general_settings: { master_key: "sk-any" } }));
    return ["--config", file, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"];
  },
});
