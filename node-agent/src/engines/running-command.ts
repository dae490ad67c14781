/** Finds the actual command line of an engine, even if a script, a systemd unit or a person started it. Linux only. */
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { EngineCommandLine } from "./shared-context.ts";

/** Undefined if no process visibly runs `program`, or several do and `port` does not identify one. */
export async function runningCommand(
  pids: Iterable<number>,
  program: string,
  port: string,
  proc = "/proc",
): Promise<EngineCommandLine | undefined> {
  const all = await Promise.all([...pids].map((pid) => commandOf(join(proc, String(pid)))));
  const seen = all.filter((command) => command !== undefined && basename(command.words[0]!) === program);
  const ofPort = seen.filter((command) => command!.words.includes(port));
  return seen.length === 1 ? seen[0] : ofPort.length === 1 ? ofPort[0] : undefined;
}

/** The arguments of another user's process are readable. Its environment is not, and counts as empty. */
async function commandOf(directory: string): Promise<EngineCommandLine | undefined> {
  const words = await readList(join(directory, "cmdline"));
  if (words.length === 0) return undefined;
  const env = (await readList(join(directory, "environ"))).map((entry) => {
    const at = entry.indexOf("=");
    return [entry.slice(0, at), entry.slice(at + 1)] as const;
  });
  return { words, env: Object.fromEntries(env.filter(([name]) => name.startsWith("LLAMA_ARG_"))) };
}

async function readList(file: string): Promise<readonly string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\0").filter((part) => part !== "");
}
