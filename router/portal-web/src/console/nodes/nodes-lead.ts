/** The sentence above the nodes: how many need somebody, and how many take no requests by an operator's wish. Pure. */
import type { ConsoleNode } from "../../../../src/surface/contract/console.ts";
import type { ConsoleMessages } from "../texts.ts";
import type { Format } from "../../messages/format.ts";

interface Told {
  readonly state: ConsoleNode["state"];
  readonly troubles: readonly ConsoleNode["troubles"][number][];
}

interface LeadTexts {
  readonly c: ConsoleMessages;
  readonly format: Format;
}

export function nodesLead(nodes: readonly Told[], { c, format }: LeadTexts): string {
  const { none, good, bad: someBad, maintenance, noneTakes } = c.nodes.lead;
  if (nodes.length === 0) return none;
  const count = format.number(nodes.length);
  const bad = nodes.filter(({ troubles }) => troubles.length > 0).length;
  const resting = nodes.filter(({ state }) => state === "maintenance").length;
  if (bad === 0 && resting === 0) return good(count);
  return [
    bad > 0 && someBad(format.number(bad), count),
    resting > 0 && maintenance(format.number(resting), count),
    resting === nodes.length && noneTakes,
  ]
    .filter(Boolean)
    .join(" ");
}
