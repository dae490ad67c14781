/** Compiles load client and engine for this machine, again only if their sources change. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

export interface Natives {
  readonly client: string;
  readonly engine: string;
}

const directory = import.meta.dirname;
const builds = join(directory, "build");
const programs = { client: ["client.c", "answers.c", "wire.c"], engine: ["engine.c", "wire.c"] } as const;

/** Compiles the programs. Throws an error with one line if there is no C compiler. */
export function compileNatives(): Natives {
  const sources = readdirSync(directory).filter((file) => /\.[ch]$/.test(file));
  const hash = createHash("sha256");
  for (const file of sources.toSorted()) hash.update(readFileSync(join(directory, file)));
  const target = join(builds, hash.digest("hex").slice(0, 16));
  if (!existsSync(target)) build(target);
  return { client: join(target, "client"), engine: join(target, "engine") };
}

/** Builds beside the target and renames the result, so that another bench never finds a partial one. */
function build(target: string): void {
  mkdirSync(builds, { recursive: true });
  const fresh = mkdtempSync(join(builds, "fresh-"));
  for (const [program, sources] of Object.entries(programs)) {
    const args = ["-O2", "-Wall", "-Wextra", "-std=gnu11", "-o", join(fresh, program), ...sources];
    const { error, status, stderr } = spawnSync("cc", args, { cwd: directory, encoding: "utf8" });
    if (error || status !== 0) rmSync(fresh, { recursive: true, force: true });
    if (error)
      throw new Error("no C compiler `cc` found: the load client is a C program (Debian: apt-get install gcc)");
    if (status !== 0) throw new Error(`cc could not compile ${program}:\n${stderr}`);
  }
  try {
    renameSync(fresh, target);
  } catch {
    rmSync(fresh, { recursive: true, force: true }); // another bench was faster
  }
}
