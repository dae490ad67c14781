/**
 * `node e2e/starvation/attacker.ts NAME TARGET [idle]` runs one attack until its standard input ends. Prints its
 * tally.
 */
import { spawnSync } from "node:child_process";
import { constants, setPriority } from "node:os";
import type { Target } from "./attack.ts";
import { attacks } from "./attacks.ts";

const [name, target, share] = process.argv.slice(2);
const attack = attacks.find((each) => each.name === name);
if (!attack || target === undefined) throw new Error(`no such attack: ${name}`);

// A real attacker has its own machine, so this process uses only idle processor time. Even at the lowest priority,
// sixteen processes take a fifth of two processors. In the idle class, which needs `chrt`, they take no time from
// others.
setPriority(constants.priority.PRIORITY_LOW);
if (share === "idle") spawnSync("chrt", ["--all-tasks", "--idle", "--pid", "0", String(process.pid)]);

const stop = new AbortController();
process.stdin.resume().once("end", () => stop.abort());
console.log("attacking");
console.log(JSON.stringify(await attack.run(JSON.parse(target) as Target, stop.signal)));
process.exit();
