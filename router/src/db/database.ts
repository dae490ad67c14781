/** Opens the router's database, embedded or configured, and migrates its schema. */
import { CamelCasePlugin, Kysely, PostgresDialect, sql, type Transaction } from "kysely";
import type { ClientConfig, Pool } from "pg";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { describeError } from "@weiche/shared/program/log.ts";
import { openClient, type ConnectionSettings } from "./client.ts";
import { DatabaseHosts, type DatabaseHostsEvents } from "./database-hosts.ts";
import { startEmbeddedServer, type EmbeddedServer, type EmbeddedServerEvents } from "./embedded-server.ts";
import { migrate } from "./migrate.ts";
import { endOf, openPool, renewIdle, useOf, type PoolUse } from "./pool.ts";
import { openPromptQueries, type PromptQueries } from "./prompt-queries.ts";
import type { Schema } from "./schema.ts";

export interface DatabaseConfig {
  readonly stateDir: string;
  /** The URL of one host or several. If undefined, the embedded server below `stateDir` is used. */
  readonly databaseUrl?: string;
}

export interface DatabaseEvents extends EmbeddedServerEvents, DatabaseHostsEvents {
  /** An idle connection broke. */
  databaseConnectionLost(error: unknown): void;
  /** The database has migrations of a newer version that this version does not know. */
  schemaIsNewer(migrations: readonly string[]): void;
}

export interface Database extends AsyncDisposable {
  /** Makes typed queries, with names in camel case. */
  readonly kysely: Kysely<Schema>;
  /** Runs plain SQL that may take some time. */
  readonly pool: Pool;
  /** Runs only statements for usage records, which must not wait behind other statements or long for a dead connection. */
  readonly usagePool: Pool;
  /** Runs the statements of requests. */
  readonly prompt: PromptQueries;
  readonly poolUses: () => readonly (PoolUse & { readonly pool: "general" | "usage" | "requests" })[];
  /** Settings for a connection outside the pools. */
  readonly connection: ConnectionSettings;
  /**
   * Replaces all idle connections and searches the primary. Called when a connection did not answer, because the idle
   * ones may be dead too.
   */
  doubt(): void;
  /** Makes all running and new statements fail. Called when the time limit of a shutdown is over. */
  abandon(): void;
  /** A line for the operator, logged at startup. */
  readonly notice?: string;
}

const versionMin = 15;
const connectionsMax = 8;
/** One connection commits at a time. If it is lost, the second connection replaces it. */
const usageConnectionsMax = 2;

const limits = {
  connectionTimeoutMillis: 5_000,
  statement_timeout: 30_000,
  lock_timeout: 10_000,
  idle_in_transaction_session_timeout: 30_000,
  /** Measured by the client, in case the server does not answer at all. */
  query_timeout: 35_000,
  keepAlive: true,
  /** The loss of an idle connection to a dead host is detected after about 10 s. */
  keepAliveInitialDelayMillis: 1_000,
} satisfies ClientConfig;

/** Statement timeout, because usage must be committed within 30 s after the database is back. */
const usageMsMax = 10_000;

export async function openDatabase(config: DatabaseConfig, clock: Clock, events: DatabaseEvents): Promise<Database> {
  await using opened = new AsyncDisposableStack();
  let embedded: EmbeddedServer | undefined;
  let hosts: DatabaseHosts | undefined;
  if (config.databaseUrl === undefined)
    embedded = opened.use(await startEmbeddedServer(config.stateDir, clock, events));
  else hosts = opened.use(await DatabaseHosts.find(config.databaseUrl, clock, events));
  const connection = { ...(hosts ?? embedded!).connection, application_name: "weiche" };
  await checkServer(connection);
  const newer = await migrateAlone(connection);
  if (newer.length > 0) events.schemaIsNewer(newer);

  const idleLost = (error: Error) => events.databaseConnectionLost(error);
  const pool = openPool({ ...connection, ...limits, max: connectionsMax }, idleLost);
  const end = endOf(pool, clock);
  opened.defer(() => end.close());
  const usagePool = openUsagePool(connection, idleLost);
  const usageEnd = endOf(usagePool, clock);
  opened.defer(() => usageEnd.close());
  const doubt = () => {
    void renewIdle(pool);
    hosts?.doubt();
  };
  const prompt = opened.use(openPromptQueries(connection, clock, { lost: doubt, idleLost }));
  const kysely = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()] });
  const closing = opened.move();
  return {
    kysely,
    pool,
    usagePool,
    prompt,
    poolUses: () => [
      { pool: "general", ...useOf(pool) },
      { pool: "usage", ...useOf(usagePool) },
      { pool: "requests", ...prompt.use() },
    ],
    connection,
    doubt,
    abandon() {
      end.abandon();
      usageEnd.abandon();
    },
    notice: embedded?.notice,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** `msMax`: the statement timeout. */
export function openUsagePool(
  connection: ConnectionSettings,
  onIdleLost: (error: Error) => void,
  msMax: number = usageMsMax,
): Pool {
  const times = { statement_timeout: msMax, lock_timeout: msMax, query_timeout: msMax + 1_000 };
  return openPool({ ...connection, ...limits, ...times, max: usageConnectionsMax }, onIdleLost);
}

/** Returns an instant in ISO 8601, which the database accepts. */
export function instantText(ms: number): string {
  return Temporal.Instant.fromEpochMilliseconds(ms).toString();
}

/** Returns SQL for an instant, to compare a column with. */
export function instantValue(ms: number) {
  return sql<Temporal.Instant>`${instantText(ms)}::timestamptz`;
}

/** Throws a `StartError` for a server that could lose committed usage, or that cannot run our SQL. */
export async function checkServer(connection: ConnectionSettings): Promise<void> {
  try {
    await using client = await openClient({
      ...connection,
      connectionTimeoutMillis: limits.connectionTimeoutMillis,
    });
    const { rows } = await client.query<Record<"version" | "fsync" | "encoding" | "standby", string>>(
      `select current_setting('server_version_num') as version, current_setting('fsync') as fsync,
         current_setting('server_encoding') as encoding, pg_is_in_recovery()::text as standby`,
    );
    const { version, fsync, encoding, standby } = rows[0]!;
    const major = Math.floor(Number(version) / 10_000);
    if (major < versionMin)
      throw new StartError(`the database is PostgreSQL ${major}: at least ${versionMin} is needed`);
    if (fsync !== "on")
      throw new StartError("the database has fsync off and would lose usage at a power failure: turn fsync on");
    if (encoding !== "UTF8") throw new StartError(`the database has the encoding ${encoding}: UTF8 is needed`);
    if (standby === "true") throw new StartError("the database is a standby: name the primary in database.url");
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`cannot use the database: ${describeError(error).error}`);
  }
}

/** Migrates on connections without timeouts, because a migration may take long. For `upTo`, errors and result see `migrate`. */
export async function migrateAlone(connection: ConnectionSettings, upTo?: string): Promise<readonly string[]> {
  const pool = openPool({ ...connection, max: 2 }, () => {});
  const database = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    return await migrate(database, upTo);
  } finally {
    await database.destroy();
  }
}

const attemptsMax = 5;

/** Runs `work` in a transaction. After a serialization failure or deadlock it runs again, at most 5 times in all. */
export async function inTransaction<T>(
  { kysely }: Database,
  work: (transaction: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return retryConflicts(() => kysely.transaction().execute(work));
}

export async function retryConflicts<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === attemptsMax || !isConflict(error)) throw error;
    }
  }
}

/** Returns whether the error is a serialization failure or a deadlock. */
function isConflict(error: unknown): boolean {
  return ["40001", "40P01"].includes((error as { code?: string }).code ?? "");
}
