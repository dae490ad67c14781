/** What of an agent.yaml nobody else may read. Pure. */
import { holdsPassword } from "@weiche/shared/files/private-file.ts";
import type { RawAgent, RawEngine } from "./config-schema.ts";

/** The first secret, by its place; undefined: the file may be read by all. */
export function secretOf(config: RawAgent): string | undefined {
  for (const { name, engines } of config.slots)
    for (const engine of engines) {
      const secret = secretOfEngine(engine);
      if (secret !== undefined) return `a secret (${secret} of ${engine.model} in slot ${name})`;
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
