/** The proxy of LiteLLM, where it is installed: one worker, no database, the engine as its OpenAI-style provider. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { ofSystem, peer } from "./child.ts";

export const litellm = peer({
  ...{ name: "litellm", what: "AI gateway on Python, one worker, no database" },
  ...ofSystem("litellm", "--version"),
  install: "pip install 'litellm[proxy]'",
  headers: () => "authorization: Bearer sk-any\r\n",
  configure(port, { port: engine, model, directory }) {
    const file = join(directory, "litellm.yaml");
    const provider = { model: `openai/${model}`, api_base: `http://127.0.0.1:${engine}/v1`, api_key: "any" };
    const models = [{ model_name: model, litellm_params: provider }];
    writeFileSync(file, stringify({ model_list: models, general_settings: { master_key: "sk-any" } }));
    return ["--config", file, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"];
  },
});
