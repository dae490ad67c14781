import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), "weiche-core-"))));
afterEach(() => rmSync(directory, { recursive: true }));

/** Starts a child that aborts with a secret in its memory. Core dumps of any size are allowed. */
test.skipIf(process.platform !== "linux")("core files of the process and its children contain no memory", () => {
  const child = `globalThis.held = ["can", "ary"].join("") + "-".repeat(3) + process.pid;
    console.log(require("node:fs").readFileSync("/proc/self/coredump_filter", "utf8"));
    process.abort();`;
  const program = `import { runProgram } from ${JSON.stringify(join(import.meta.dirname, "program.ts"))};
    import { spawnSync } from "node:child_process";
    await runProgram("test", async () => {
      spawnSync(process.execPath, ["-e", ${JSON.stringify(child)}], { stdio: ["ignore", "inherit", "ignore"] });
    });`;
  const args = ["-c", 'ulimit -c unlimited; exec "$0" --input-type=module -e "$1"', process.execPath, program];
  const { stdout } = spawnSync("sh", args, { cwd: directory, encoding: "utf8" });
  expect(stdout.trim()).toBe("00000000");
  for (const file of readdirSync(directory))
    expect([file, readFileSync(join(directory, file)).includes("canary---")]).toEqual([file, false]);
});
