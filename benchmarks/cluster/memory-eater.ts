/**
 * Loaded before a program (`node --import memory-eater.ts?file=PATH --max-old-space-size=N`), it takes memory, once the file
 * is there, until the program has none left.
 */
import { existsSync, rmSync } from "node:fs";

const lookMs = 50;
const file = new URL(import.meta.url).searchParams.get("file")!;
const eaten: number[][] = [];

setInterval(() => {
  if (!existsSync(file)) return;
  rmSync(file); // the program that is started next lives
  setInterval(() => eaten.push(Array.from({ length: 1 << 20 }, Math.random)), 1);
}, lookMs).unref();
