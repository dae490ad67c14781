/**
 * The sums that each row of usage has, in the order of the tables. The contract, the SQL, the CSV, the portal's page and
 * the `weiche` command are made from this list. Contains only data, because browsers import it.
 */
export const usageColumns = [
  { name: "requests", adds: ["requests"], isMain: true },
  { name: "promptTokens", adds: ["prompt_tokens"], isMain: true },
  { name: "completionTokens", adds: ["completion_tokens"], isMain: true },
  { name: "totalTokens", adds: ["prompt_tokens", "completion_tokens"], isMain: false },
  { name: "credits", adds: ["credits"], isMain: true },
  // The part of `totalTokens` that was estimated, not counted.
  { name: "estimatedTokens", adds: ["estimated_tokens"], isMain: false },
] as const;

/** A sum of records: their column. `requests` counts them. */
export type SummedColumn = Exclude<UsageColumn["adds"][number], "requests">;
type UsageColumn = (typeof usageColumns)[number];
export type UsageSum = UsageColumn["name"];

/** One value for each column. Only credits have their own type. */
export type UsageSums<Count, Credits> = { readonly [Name in UsageSum]: Name extends "credits" ? Credits : Count };

export const usageSums: readonly UsageSum[] = usageColumns.map(({ name }) => name);
/** The columns of tables with little room: the portal's page and the models of `weiche credits`. */
export const mainSums = usageColumns.filter((column) => column.isMain).map(({ name }) => name);
