/**
 * Makes the item of the console's pipeline page: usage on its way from nodes to totals, the database, and the evaluation
 * of credits.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { instantText, type Database } from "../../../db/database.ts";
import { isUnavailable } from "../../../db/failures.ts";
import type { ConsolePipeline } from "../../contract/console.ts";
import type { Fleet, HandlerDeps, PipelineParts } from "../handler-deps.ts";
import { seconds } from "../nodes.ts";

const answerMsMax = 2_000;

export async function viewPipeline(
  { database, clock, fleet }: HandlerDeps,
  parts: PipelineParts,
): Promise<ConsolePipeline> {
  const ranAtMs = parts.jobRanAtMs("credits");
  const { answersInMs, setAside } = await ask(database, clock);
  return {
    unacknowledged: viewOutboxes(fleet),
    waitingForCommit: parts.waitingForCommit(),
    setAside,
    lastEvaluationAt: ranAtMs === undefined ? null : instantText(ranAtMs),
    evaluateEverySeconds: parts.evaluateMs / 1000,
    database: {
      answersInMs,
      pools: database.poolUses().map(({ pool, used, max, waiting }) => ({ pool, used, max, waiting })),
      keysReadSecondsAgo: seconds(parts.keysAgeMs())!,
    },
  };
}

function viewOutboxes({ details }: Fleet): ConsolePipeline["unacknowledged"] {
  const all = details().map(({ view, linked, report }) => ({
    name: view.node,
    outbox: linked ? report?.outbox : undefined,
  }));
  const nodes = all.flatMap(({ name, outbox }) =>
    outbox ? [{ name, records: Number(outbox.records), oldestSeconds: seconds(outbox.oldestMs) }] : [],
  );
  const ages = nodes.flatMap(({ oldestSeconds }) => oldestSeconds ?? []);
  return {
    records: nodes.reduce((sum, { records }) => sum + records, 0),
    ...(ages.length > 0 && { oldestSeconds: Math.max(...ages) }),
    nodes,
    unknown: all.flatMap(({ name, outbox }) => (outbox ? [] : [name])),
  };
}

/** Measures the time of a small database query, which counts the records that were set aside. */
async function ask({ pool }: Database, clock: Clock) {
  const beganMs = clock.monotonicMs();
  const late = Promise.withResolvers<undefined>();
  const timer = clock.after(answerMsMax, () => late.resolve(undefined));
  const counted = pool.query<{ lastDay: bigint; total: bigint }>(
    `select count(*) as total, count(*) filter (where refused_at > now() - interval '1 day') as "lastDay" from usage_refused`,
  );
  counted.catch(() => {}); // it may fail after the time limit
  try {
    const found = await Promise.race([counted, late.promise]);
    if (!found) return { answersInMs: null, setAside: null };
    const { lastDay, total } = found.rows[0]!;
    const answersInMs = Math.round((clock.monotonicMs() - beganMs) * 10) / 10;
    return { answersInMs, setAside: { lastDay: Number(lastDay), total: Number(total) } };
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return { answersInMs: null, setAside: null };
  } finally {
    timer.cancel();
  }
}
