/**
 * Tests need nothing but Node.js, npm and git to pass. One that tries something with another program asks here: where the
 * program is missing the test is not run, and `npm test` counts it and says why. With `CI` set every test runs, and fails.
 */
import { spawnSync } from "node:child_process";

declare module "vitest" {
  interface TaskMeta {
    /** Why the test is not run on this machine, and what to install. */
    notRun?: string;
  }
}

export interface RunOptions {
  readonly skip?: true;
  readonly meta?: { readonly notRun: string };
}

/** Debian's package of each program. */
const packages = {
  cc: "gcc libc6-dev",
  curl: "curl",
  openssl: "openssl",
  promtool: "prometheus",
  "systemd-analyze": "systemd",
} as const;

/** Options of a test or a `describe` that starts these programs. */
export function needs(...programs: readonly (keyof typeof packages)[]): RunOptions {
  const absent = programs.find((program) => spawnSync(program, ["--version"], { stdio: "ignore" }).error !== undefined);
  if (absent === undefined) return {};
  return notRun(`${absent} is missing; as root: apt-get install -y --no-install-recommends ${packages[absent]}`);
}

/** Options of a test that cannot run here; `reason` says what is missing and how to get it. */
export function notRun(reason: string): RunOptions {
  return process.env["CI"] ? {} : { skip: true, meta: { notRun: reason } };
}
