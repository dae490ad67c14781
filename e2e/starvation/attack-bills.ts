/** Checks that attackers pay once for the tokens that engines generated for them, and for nothing else. */
import type { Made } from "../cluster/billing-check.ts";
import type { DumpedRecord, UsageDump } from "../cluster/usage-dump.ts";

/** Selects the usage of some accounts. */
export function ofAccounts({ records, totals, days }: UsageDump, has: (accountId: string) => boolean): UsageDump {
  const ofSum = ({ of }: { readonly of: string }) => has(of.split(" ")[1]!);
  return {
    records: records.filter(({ accountId }) => has(accountId)),
    totals: totals.filter(ofSum),
    days: days.filter(ofSum),
  };
}

/** Returns a sentence for each fault. `made` contains all requests of these accounts that an engine received. */
export function attackFaults({ records }: Pick<UsageDump, "records">, made: readonly Made[]): string[] {
  const paid = Map.groupBy(
    records.filter(({ outcome, credits }) => outcome !== "broken" && outcome !== "void" && credits > 0n),
    ({ requestId }) => requestId,
  );
  const met = new Set(made.map(({ id }) => id));
  const unmet = [...paid.values()].flat().filter(({ requestId }) => !met.has(requestId));
  const faults = unmet.map(
    ({ requestId, node, outcome, promptTokens, completionTokens }) =>
      `no engine met ${requestId}, and it costs ${promptTokens} + ${completionTokens} on ${node} (${outcome})`,
  );
  for (const one of made) {
    const fault = faultOf(one, paid.get(one.id) ?? []);
    if (fault !== undefined) faults.push(`${one.id}, for which ${one.generated} tokens were made, ${fault}`);
  }
  return faults;
}

/** Tokens of an answer that ends within this time may not have reached the agent yet. */
const newsMsMax = 1_000;

function faultOf(made: Made, paid: readonly DumpedRecord[]): string | undefined {
  const { generated, finished, prompt_tokens, firstTokenAtMs = Infinity, closedAtMs = Infinity } = made;
  const [record] = paid;
  if (paid.length > 1) return `is billed ${paid.length} times`;
  if (!record) return finished || closedAtMs - firstTokenAtMs > newsMsMax ? "is not billed" : undefined;
  const { completionTokens, promptTokens, outcome } = record;
  if (promptTokens !== prompt_tokens) return `is billed ${promptTokens} tokens of input, not ${prompt_tokens}`;
  // Some tokens of an aborted answer may be in transit between engine and agent.
  const isWrong = finished && outcome === "finished" ? completionTokens !== generated : completionTokens > generated;
  return isWrong ? `is billed ${completionTokens} (${outcome})` : undefined;
}
