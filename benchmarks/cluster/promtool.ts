/** Prometheus' own checker, which Debian's package `prometheus` brings. */
import { spawnSync } from "node:child_process";

/** Runs promtool; returns its status and all that it printed. Throws, with what to install, where it is not there. */
export function promtool(args: readonly string[], input = ""): { readonly status: number; readonly said: string } {
  const { status, error, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
  if (error)
    throw new Error(
      `cannot run promtool (${(error as NodeJS.ErrnoException).code}); as root: apt-get update && apt-get install -y --no-install-recommends prometheus`,
    );
  return { status: status!, said: `${stdout}${stderr}` };
}
