/** Finds the programs of real engines on this machine. */
import { execFileSync } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Returns the file that `variable` names, or the first `name` in PATH. Throws if the variable's file cannot be run. */
export function findProgram(name: string, variable?: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = variable && env[variable];
  if (named) {
    if (isProgram(named)) return named;
    throw new Error(`${variable}=${named} is not a program that can be run`);
  }
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Returns the line with the version that the program prints on stdout or stderr, or "unknown". */
export function versionOf(program: string): string {
  try {
    const options = { encoding: "utf8", timeout: 120_000 } as const;
    const text = execFileSync("/bin/sh", ["-c", 'exec "$0" --version 2>&1', program], options);
    const lines = text.split("\n").map((line) => line.trim());
    const told = lines.find((line) => /^version\b/i.test(line)) ?? lines.findLast((line) => /^\d+\.\d+\S*$/.test(line));
    return told ?? "unknown";
  } catch {
    return "unknown";
  }
}
