/**
 * Makes the parts of api.md that are also on the portal's help page, from the same tables and texts: refusals, retries,
 * streaming, costs, limits and bounds on JSON Schemas. `node docs/tools/api-page.ts` writes them between their marks. The
 * portal also shows the whole page: `npm run portal` builds it in.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { activeKeysMax } from "../../router/src/accounts/keys.ts";
import { usersMax } from "../../router/src/accounts/users.ts";
import { bodyBytesMax } from "../../router/src/api/body/body-receiver.ts";
import { changesBurst } from "../../router/src/rights/audit-log.ts";
import { apiRefusals } from "../../router/src/surface/routes/service.ts";
import { help } from "../../router/portal-web/src/messages/en/help.ts";
import { createFormat } from "../../router/portal-web/src/messages/format.ts";
import { schemaBounds } from "../../router/portal-web/src/pages/help/schema-bounds.ts";
import { keysOf, schemas as fileSchemas } from "./configure-page.ts";
import { list, withMade } from "./made-parts.ts";

export const apiFile = join(import.meta.dirname, "../api.md");

/** Returns the page with fresh parts. Throws if a part has no place in it. */
export function apiPage(page: string): string {
  const rulesOf = (name: "retries" | "streaming" | "costs") => list(Object.values(help[name].rules));
  const parts = {
    refusals: refusals(),
    retries: rulesOf("retries"),
    streaming: rulesOf("streaming"),
    costs: rulesOf("costs"),
    limits: limits(),
    schemas: schemas(),
  };
  return withMade(page, parts, "docs/tools/api-page.ts");
}

function refusals(): string {
  const { page, columns, yes, no } = help.errors;
  return list(
    apiRefusals.map(({ kind, status, type, code, retry }) => {
      const name = code === null ? page : `\`${code === String(status) ? type : code}\``;
      const { means, todo } = help.refusals[kind];
      return `${status} ${name}: ${means} ${todo} ${columns.retry}: ${retry ? yes : no}.`;
    }),
  );
}

/** The default limits. */
function limits(): string {
  const { address, body, duration, keys, account, retry, evaluation } = help.limits;
  const { number } = createFormat("en");
  return list([
    address(byDefault("limits.perIpBurst"), byDefault("limits.perIpPerSecond")),
    "Requests a minute, parallel requests and credits are shared by all keys of the account: see its package.",
    body(String(bodyBytesMax / 2 ** 20)),
    duration(byDefault("requestSeconds")),
    keys(String(activeKeysMax)),
    account(number(usersMax), number(changesBurst)),
    retry,
    evaluation,
  ]);
}

function schemas(): string {
  const { lead, columns, rows, bySize, rules } = help.schemas;
  const bound = (count: number | null) => (count === null ? bySize : createFormat("en").number(count));
  const bounds = (Object.keys(rows) as (keyof typeof rows)[]).map((name) => {
    const { others, vllm } = schemaBounds[name];
    return `${rows[name]}: ${bound(others)} (${columns.others}), ${bound(vllm)} (${columns.vllm})`;
  });
  return `${lead}\n\n${list(bounds)}\nWhat follows from these bounds:\n\n${list(Object.values(rules))}`;
}

function byDefault(path: string): string {
  return String(keysOf(fileSchemas["router.yaml"]).find((key) => key.path === path)!.schema.default as number);
}

if (import.meta.main) writeFileSync(apiFile, apiPage(readFileSync(apiFile, "utf8")));
