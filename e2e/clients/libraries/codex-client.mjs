/** A coding agent that knows the Responses API alone. */
import { apiKey, baseURL, check, model, runCommand, versions } from "./service.mjs";

versions("@openai/codex");

function ask(wire) {
  const provider = `{name="Weiche",base_url="${baseURL}",env_key="WEICHE_API_KEY",wire_api="${wire}"}`;
  const settings = ["model_provider=weiche", `model=${model}`, `model_providers.weiche=${provider}`];
  const args = [
    "exec",
    "--skip-git-repo-check",
    ...settings.flatMap((setting) => ["-c", setting]),
    "sim:tokens=5 Hello",
  ];
  return runCommand("codex", args, { WEICHE_API_KEY: apiKey });
}

await check("chat completions", () => ask("chat"));
await check("Responses", () => ask("responses"));
