/**
 * Preloaded (see `preloaded-file.ts`, with `--max-old-space-size=N`): once the program's file is there, takes memory until
 * the program has none left. Not in threads: one that runs out of memory ends without its program.
 */
import { existsSync, rmSync } from "node:fs";
import { fileOfProgram } from "../cluster/preloaded-file.ts";

const lookMs = 50;
const file = fileOfProgram(import.meta.url);
const eaten: number[][] = [];

if (file !== undefined)
  setInterval(() => {
    if (!existsSync(file)) return;
    rmSync(file); // the program that is started next lives
    setInterval(() => eaten.push(Array.from({ length: 1 << 20 }, Math.random)), 1);
  }, lookMs).unref();
