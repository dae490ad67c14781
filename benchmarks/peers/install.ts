/** Installs the peers from npm and Python packages with pinned versions when the bench first needs them. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const here = (path: string) => join(import.meta.dirname, path);

/** The directory of the Python peers' programs. */
export const pythonPrograms = here("python/bin");

const origins = [
  {
    name: "npm",
    isThere: () => existsSync(here("node_modules/@portkey-ai/gateway")),
    commands: [["npm", "ci", "--prefix", here(""), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]],
  },
  {
    name: "Python",
    isThere: () => existsSync(join(pythonPrograms, "litellm")),
    commands: [
      ["python3", "-m", "venv", here("python")],
      [
        join(pythonPrograms, "pip"),
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        here("requirements.txt"),
      ],
    ],
  },
] as const;

/** Installs the peers. Returns a sentence for each peer that cannot be installed. The bench continues without these. */
export function installPeers(): string[] {
  return origins.flatMap(({ name, isThere, commands }) => {
    if (isThere()) return [];
    console.log(`installing the peers from ${name} …`);
    const isDone = commands.every(([command, ...args]) => {
      return spawnSync(command, args, { cwd: here(""), stdio: "inherit" }).status === 0;
    });
    return isDone ? [] : [`the peers from ${name} could not be installed; the benchmark continues without them`];
  });
}
