/** Asks the database of a router.yaml whether the router could start with it and with the packages of the catalogue. */
import { CamelCasePlugin, Kysely, PostgresDialect } from "kysely";
import type { PackageEntry } from "@weiche/shared/packages.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { describeError } from "@weiche/shared/program/log.ts";
import { openClient, type ConnectionSettings } from "../../../db/client.ts";
import { primaryOf } from "../../../db/database-hosts.ts";
import { checkServer } from "../../../db/database.ts";
import { existingFolder } from "../../../db/embedded-home.ts";
import { runningServer } from "../../../db/embedded-server.ts";
import { openPool } from "../../../db/pool.ts";
import type { Schema } from "../../../db/schema.ts";
import { refusedPackages, type RefusedPackage } from "../../../subscriptions/publish-packages.ts";

interface DatabaseVerdict {
  /** Why the router would not start with this database. */
  readonly mistakes: readonly string[];
  readonly refused: readonly RefusedPackage[];
  /** Why the database could not be asked. */
  readonly warnings: readonly string[];
}

const patience = {
  connectionTimeoutMillis: 3_000,
  statement_timeout: 5_000,
  query_timeout: 6_000,
  lock_timeout: 3_000,
};

/** `url`: of the configured database. If undefined, the embedded one below `stateDir` is asked, if there is one. */
export async function askDatabase(
  { url, stateDir }: { readonly url: string | undefined; readonly stateDir: string },
  packages: readonly PackageEntry[],
  nowMs: number,
): Promise<DatabaseVerdict> {
  const nothing: DatabaseVerdict = { mistakes: [], refused: [], warnings: [] };
  if (url === undefined && existingFolder(stateDir) === undefined) return nothing;
  let connection: ConnectionSettings;
  try {
    connection = url === undefined ? await runningServer(stateDir) : { connectionString: await primaryOf(url) };
    await using _client = await openClient({ ...connection, ...patience });
  } catch (error) {
    return { ...nothing, warnings: [unasked(error)] };
  }
  try {
    await checkServer(connection);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return { ...nothing, mistakes: [error.message] };
  }
  const pool = openPool({ ...connection, ...patience, max: 1 }, () => {});
  const kysely = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()] });
  try {
    const { rows } = await pool.query<{ isEmpty: boolean }>("select to_regclass('packages') is null as \"isEmpty\"");
    if (rows[0]!.isEmpty) return nothing;
    return { ...nothing, refused: await refusedPackages(kysely, packages, nowMs) };
  } catch (error) {
    return { ...nothing, warnings: [unasked(error)] };
  } finally {
    await kysely.destroy();
  }
}

function unasked(error: unknown): string {
  return `could not ask the database (${describeError(error).error}), so packages that accounts have booked are not checked`;
}
