import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { runningCommand } from "./running-command.ts";

const proc = mkdtempSync(join(tmpdir(), "weiche-proc-"));
afterEach(() => rmSync(proc, { recursive: true }));

function processes(lines: Readonly<Record<number, string>>): readonly number[] {
  for (const [pid, line] of Object.entries(lines)) {
    mkdirSync(join(proc, pid), { recursive: true });
    writeFileSync(join(proc, pid, "cmdline"), `${line.split(" ").join("\0")}\0`);
    writeFileSync(join(proc, pid, "environ"), "HOME=/root\0LLAMA_ARG_CTX_SIZE=4096\0");
  }
  return Object.keys(lines).map(Number);
}

test("the engine is found behind the script that started it, or by its port among several engines", async () => {
  const script = processes({ 1: "sh run.sh", 2: "/opt/llama-server -np 4" });
  expect(await runningCommand(script, "llama-server", "81", proc)).toEqual({
    ...{ words: ["/opt/llama-server", "-np", "4"], env: { LLAMA_ARG_CTX_SIZE: "4096" } },
  });
  const several = processes({ 1: "llama-server --port 80", 2: "llama-server --port 81", 3: "sh llama-server" });
  const found = await runningCommand(several, "llama-server", "81", proc);
  expect(found?.words).toEqual(["llama-server", "--port", "81"]);
  expect(await runningCommand(several, "llama-server", "82", proc)).toBeUndefined();
  expect(await runningCommand([9], "llama-server", "81", proc)).toBeUndefined();
});
