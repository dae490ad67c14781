/**
 * The named points of a request at which a part of the system is killed, and where in the source each one is. A process that
 * is started with `kill-point-preload.ts` says when it is there; the source itself knows nothing of it.
 */

export interface Place {
  readonly file: string;
  /** Reached right before this code, which is there once. */
  readonly before?: string;
  /** Reached right after it. */
  readonly after?: string;
  /** An expression in the scope of the place: whether the point is reached. */
  readonly when?: string;
  /** An expression in the scope of the place: the request's node. Absent: the node known before, or the program's own. */
  readonly node?: string;
  /** How often it is passed before the point is reached. */
  readonly passes?: number;
}

const generate = "router/src/api/generate.ts";
const session = "router/src/nodes/node-link-session.ts";
const writer = "node-agent/src/outbox/outbox-writer.ts";

export const killPoints = {
  accepted: [{ file: generate, before: "await generateAs(exchange, await authenticate" }],
  "key found": [{ file: generate, before: "if (quotaExhausted) throw quotaError();" }],
  "slot taken": [{ file: generate, before: "limitDuration(exchange, deps);" }],
  "node chosen": [{ file: generate, before: "const tried: TriedNode = {", node: "placed.node" }],
  sent: [{ file: "router/src/nodes/data-connections.ts", after: "answer.stream.end(ends.complete);" }],
  prefill: [
    {
      file: "benchmarks/sim-engine/generation.ts",
      before: "const said = this.#isStream ? (form.reading?.() ?? []) : [];",
    },
    { file: "benchmarks/sim-engine/embeddings.ts", before: "core.submit(work);" },
  ],
  "first byte": [{ file: "router/src/api/relay.ts", before: "this.#exchange.sink.head(200, {" }],
  "mid-stream": [
    { file: "node-agent/src/exchange/engine-access.ts", before: "run.meter.onOutput(chunks);", passes: 10 },
  ],
  "last token before usage": [
    {
      file: "benchmarks/sim-engine/generation.ts",
      before: "if (last) this.#finish(script.finish, false);",
      when: "last",
    },
  ],
  "record appended unsynced": [{ file: writer, after: "active.unsynced.push(...group);" }],
  "record synced": [{ file: writer, after: "await active.file.sync();" }],
  "record sent up": [{ file: session, before: "if (this.#batches < batchesMax) void", node: "node" }],
  "committed, unacknowledged": [
    { file: session, before: 'this.#send({ $case: "usageAck", value: { batchId } });', node: "node" },
  ],
  acknowledged: [{ file: "node-agent/src/outbox/delivery.ts", before: "this.#events.usageDelivered(sent.records);" }],
} satisfies Record<string, readonly Place[]>;

export type KillPoint = keyof typeof killPoints;
export const killPointNames = Object.keys(killPoints) as readonly KillPoint[];

/** The process to kill; agent and engine are those of the request's node. */
export const victims = ["router", "agent", "engine", "database"] as const;
export type Victim = (typeof victims)[number];

/** Given in a file, which is there as long as the point has not been reached. */
export interface KillPlan {
  readonly point: KillPoint;
  /** Processes by node; one that is killed whatever the node is has the name `*`. */
  readonly pids: Readonly<Record<string, number>>;
}

/** In the environment of the programs: the plan's path. */
export const planVariable = "WEICHE_TEST_KILL_PLAN";
/** The last part of this path names the node; an engine gets the path of its agent. */
export const nodeVariable = "WEICHE_DATA_DIR";
