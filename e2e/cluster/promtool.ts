/** Runs promtool, the checker of Prometheus, which Debian's package `prometheus` installs. */
import { spawnSync } from "node:child_process";

/** Runs promtool and returns its status and output. If it is missing, throws an error that names the package. */
export function promtool(args: readonly string[], input = ""): { readonly status: number; readonly said: string } {
  const { status, error, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
  if (error)
    throw new Error(
      `cannot run promtool (${(error as NodeJS.ErrnoException).code}); as root: apt-get update && apt-get install -y --no-install-recommends prometheus`,
    );
  return { status: status!, said: `${stdout}${stderr}` };
}
