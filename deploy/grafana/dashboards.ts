/** Makes the dashboards' JSON files. `node deploy/grafana/dashboards.ts` writes them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { money } from "./money.ts";
import { nodesAndSlots } from "./nodes-and-slots.ts";
import { service } from "./service.ts";

/** The dashboards by their file names. */
export const dashboards = { service, "nodes-and-slots": nodesAndSlots, money };

export const dashboardFile = (name: string) => join(import.meta.dirname, `${name}.json`);

export function jsonOf(dashboard: (typeof dashboards)[keyof typeof dashboards]): string {
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

/** Replaces an expression's variables as Grafana does if all values are selected. */
export function expand(expr: string, { rateInterval, range }: { rateInterval: string; range: string }): string {
  return expr
    .replaceAll("$__rate_interval", rateInterval)
    .replaceAll("$__range", range)
    .replaceAll(/\$(router|node|slot|model)\b/g, ".*");
}

if (import.meta.main)
  for (const [name, dashboard] of Object.entries(dashboards)) writeFileSync(dashboardFile(name), jsonOf(dashboard));
