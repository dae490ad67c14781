/**
 * Makes the parts of API.md that the portal's page Help says, too: refusals, retries and limits, from the same tables and
 * texts. `node deploy/api-page.ts` writes them between their marks.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { activeKeysMax } from "../router/src/accounts/keys.ts";
import { bodyBytesMax } from "../router/src/api/body/read-body.ts";
import { apiRefusals } from "../router/src/surface/routes/service.ts";
import { help } from "../router/portal-web/src/messages/en/help.ts";
import { keysOf, schemas } from "./configure-page.ts";
import { list, table, withMade } from "./made-parts.ts";

export const apiFile = join(import.meta.dirname, "API.md");

/** The page with fresh parts. Throws if one has no place in it. */
export function apiPage(page: string): string {
  const parts = { refusals: refusalTable(), retries: list(Object.values(help.retries.rules)), limits: limits() };
  return withMade(page, parts, "deploy/api-page.ts");
}

function refusalTable(): string {
  const { columns, page, yes, no } = help.errors;
  const rows = apiRefusals.map(({ kind, status, type, code, retry }) => {
    const name = code === null ? page : `\`${code === String(status) ? type : code}\``;
    const { means, todo } = help.refusals[kind];
    return [`${status} ${name}`, means, todo, retry ? yes : no];
  });
  return table([columns.status, columns.means, columns.todo, columns.retry], rows);
}

/** As they are unless the operator has set others. */
function limits(): string {
  const { address, body, duration, keys, evaluation } = help.limits;
  return list([
    address(byDefault("limits.perIpBurst"), byDefault("limits.perIpPerSecond")),
    "Requests a minute, parallel requests and credits are shared by all keys of the account: see its package.",
    body(String(bodyBytesMax / 2 ** 20)),
    duration(byDefault("requestSeconds")),
    keys(String(activeKeysMax)),
    evaluation,
  ]);
}

function byDefault(path: string): string {
  return String(keysOf(schemas["router.yaml"]).find((key) => key.path === path)!.schema.default as number);
}

if (import.meta.main) writeFileSync(apiFile, apiPage(readFileSync(apiFile, "utf8")));
