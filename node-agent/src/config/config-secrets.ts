/** Finds secrets in an agent.yaml. Other users must not be able to read a file with a secret. Pure. */
import { holdsPassword } from "@weiche/shared/files/private-file.ts";
import type { RawAgent, RawEngine } from "./config-schema.ts";
import { nameOf } from "./engine-models.ts";

/** Describes the first secret by its place. Returns undefined if there is none. */
export function secretOf(config: RawAgent): string | undefined {
  for (const { name, engines } of config.slots)
    for (const engine of engines) {
      const secret = secretOfEngine(engine);
      if (secret !== undefined) return `a secret (${secret} of ${nameOf(engine)} in slot ${name})`;
    }
  return undefined;
}

function secretOfEngine({ env = {}, command = [], url = "" }: RawEngine): string | undefined {
  const variable = Object.keys(env).find((name) => /(^|_)(TOKEN|KEY|SECRET|PASSWORD)$/i.test(name));
  if (variable !== undefined) return `env.${variable}`;
  const flag = command.find((part) => /^--?[\w-]*(token|key|secret|password)(=.|$)/i.test(part));
  if (flag !== undefined) return flag.split("=")[0];
  return holdsPassword(url) ? "url" : undefined;
}
