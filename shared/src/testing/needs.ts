/**
 * Tests need only Node.js, npm and git to pass. A test that uses another program asks here. If the program is missing,
 * the test is skipped, and `npm test` counts it with the reason. If `CI` is set, every test runs, and fails without its
 * program.
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

/** The Debian package of each program. */
const packages = {
  "apt-get": "apt",
  buildah: "buildah",
  cc: "gcc libc6-dev",
  curl: "curl",
  gpg: "gnupg",
  haproxy: "haproxy",
  openssl: "openssl",
  promtool: "prometheus",
  ps: "procps",
  "systemd-analyze": "systemd",
  "valkey-server": "valkey-server",
} as const;

/** Programs that can replace another one. */
const others: Readonly<Record<string, readonly string[]>> = { "valkey-server": ["redis-server"] };

/** Returns the program, or the first replacement, that this machine has. */
export function findProgram(program: keyof typeof packages): string | undefined {
  const isHere = (name: string) => spawnSync(name, ["--version"], { stdio: "ignore" }).error === undefined;
  return [program, ...(others[program] ?? [])].find(isHere);
}

/** Options of a test or a `describe` that starts these programs. */
export function needs(...programs: readonly (keyof typeof packages)[]): RunOptions {
  const absent = programs.find((program) => findProgram(program) === undefined);
  if (absent === undefined) return {};
  return notRun(`${absent} is missing; as root: apt-get install -y --no-install-recommends ${packages[absent]}`);
}

/** Options of a test that cannot run here. `reason`: what is missing and how to get it. */
export function notRun(reason: string): RunOptions {
  return process.env["CI"] ? {} : { skip: true, meta: { notRun: reason } };
}
