/** Reads the requests of a node's simulated engines from a journal, which remains after an engine is killed. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JournalLine } from "../sim-engine/ledger.ts";
import type { Made } from "./billing-check.ts";
import type { Cluster } from "./cluster.ts";

/** Returns the path of the journal, beside the node's data directory. */
export function journalOf({ directory }: Cluster, node: string): string {
  return join(directory, `${node}.journal`);
}

/** Reads the journal. Without a file the list is empty, because no engine has received a request. */
export function readJournal(file: string, node: string, itlMs: number): Made[] {
  const last = new Map<string, Made>();
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  for (const text of lines.filter(Boolean)) {
    const line = JSON.parse(text) as JournalLine;
    if (line.event === "begun" || line.event === "request") last.set(line.id, { ...line, node, itlMs });
  }
  return [...last.values()];
}
