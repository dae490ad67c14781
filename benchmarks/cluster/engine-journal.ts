/** The requests that the simulated engines of a node met, from a journal that outlives a killed engine. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JournalLine } from "../sim-engine/ledger.ts";
import type { Made } from "./billing-check.ts";
import type { Cluster } from "./cluster.ts";

/** The file, beside the node's data directory. */
export function journalOf({ directory }: Pick<Cluster, "directory">, node: string): string {
  return join(directory, `${node}.journal`);
}

/** Empty: there is no such file, since no engine met a request. */
export function readJournal(file: string, node: string, itlMs: number): Made[] {
  const last = new Map<string, Made>();
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  for (const text of lines.filter(Boolean)) {
    const line = JSON.parse(text) as JournalLine;
    if (line.event === "begun" || line.event === "request") last.set(line.id, { ...line, node, itlMs });
  }
  return [...last.values()];
}
