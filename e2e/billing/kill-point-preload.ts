/**
 * Loaded with `node --import`. Kills the process that a plan names when the program reaches the plan's point. When Node
 * loads a module, this hook inserts a call at each point. Throws if the text of a point does not occur exactly once.
 */
import { readFileSync, renameSync } from "node:fs";
import { registerHooks } from "node:module";
import { basename } from "node:path";
import { killPoints, nodeVariable, planVariable, type KillPlan, type KillPoint, type Place } from "./kill-points.ts";

const planFile = process.env[planVariable];
const passed = new Map<KillPoint, number>();
let requestNode = basename(process.env[nodeVariable] ?? "");

function reached(point: KillPoint, passes: number, node: string | undefined): void {
  requestNode = node ?? requestNode;
  const plan = readPlan();
  if (plan?.point !== point) return;
  const count = (passed.get(point) ?? 0) + 1;
  passed.set(point, count < passes ? count : 0);
  if (count < passes) return;
  try {
    renameSync(planFile!, `${planFile}.done`);
  } catch {
    return; // another process reached the point at the same time
  }
  const pid = plan.pids["*"] ?? plan.pids[requestNode] ?? Object.values(plan.pids)[0]!;
  process.kill(pid, "SIGKILL");
}

function readPlan(): KillPlan | undefined {
  try {
    return JSON.parse(readFileSync(planFile!, "utf8")) as KillPlan;
  } catch {
    return undefined;
  }
}

if (planFile !== undefined) {
  Object.assign(globalThis, { reachedKillPoint: reached });
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const places = (Object.entries(killPoints) as [KillPoint, readonly Place[]][]).flatMap(([point, all]) =>
        all.filter(({ file }) => url.endsWith(`/${file}`)).map((place) => ({ point, place })),
      );
      if (places.length === 0) return loaded;
      let source =
        typeof loaded.source === "string" ? loaded.source : Buffer.from(loaded.source as Uint8Array).toString();
      for (const { point, place } of places) source = withCall(source, point, place);
      return { ...loaded, source };
    },
  });
}

function withCall(source: string, point: KillPoint, { file, before, after, when, node, passes = 1 }: Place): string {
  const anchor = before ?? after!;
  const parts = source.split(anchor);
  if (parts.length !== 2)
    throw new Error(`${file} contains the code of point "${point}" ${parts.length - 1} times: ${anchor}`);
  const call = `${when ? `if (${when}) ` : ""}globalThis.reachedKillPoint(${JSON.stringify(point)}, ${passes}, ${node});`;
  return parts.join(before ? `${call} ${anchor}` : `${anchor} ${call}`);
}
