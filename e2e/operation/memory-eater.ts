/**
 * Preloaded (see `preloaded-file.ts`, with `--max-old-space-size=N`). Once the program's file exists, allocates memory
 * until the program has none left. It does not run in threads, because a thread without memory ends alone.
 */
import { existsSync, rmSync } from "node:fs";
import { fileOfProgram } from "../cluster/preloaded-file.ts";

const lookMs = 50;
const file = fileOfProgram(import.meta.url);
const eaten: number[][] = [];

if (file !== undefined)
  setInterval(() => {
    if (!existsSync(file)) return;
    rmSync(file); // the next process of the program survives
    setInterval(() => eaten.push(Array.from({ length: 1 << 20 }, Math.random)), 1);
  }, lookMs).unref();
