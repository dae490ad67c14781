/**
 * The named points of a request at which tests kill a part of the system, with their place in the source. A process started
 * with `kill-point-preload.ts` reports when it reaches a point. The source itself has no such code.
 */

export interface Place {
  readonly file: string;
  /** The point is right before this code, which occurs once. */
  readonly before?: string;
  /** The point is right after this code. */
  readonly after?: string;
  /** An expression in the scope of the place that returns whether the point is reached. */
  readonly when?: string;
  /** An expression for the request's node. Defaults to the node known before, or the program's own. */
  readonly node?: string;
  /** How often the place is passed before the point is reached. */
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
      file: "e2e/sim-engine/generation.ts",
      before: "const said = this.#isStream ? (form.reading?.() ?? []) : [];",
    },
    { file: "e2e/sim-engine/embeddings.ts", before: "core.submit(work);" },
  ],
  "first byte": [{ file: "router/src/api/relay.ts", before: "this.#exchange.sink.head(200, {" }],
  "mid-stream": [
    { file: "node-agent/src/exchange/engine-access.ts", before: "run.meter.onOutput(chunks);", passes: 10 },
  ],
  "last token before usage": [
    {
      file: "e2e/sim-engine/generation.ts",
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

/** The process to kill. Agent and engine belong to the request's node. */
export const victims = ["router", "agent", "engine", "database"] as const;
export type Victim = (typeof victims)[number];

/** The plan is a file, which is removed when the point is reached. */
export interface KillPlan {
  readonly point: KillPoint;
  /** Processes by node. A process with the name `*` is killed on every node. */
  readonly pids: Readonly<Record<string, number>>;
}

/** The variable with the plan's path. */
export const planVariable = "WEICHE_TEST_KILL_PLAN";
/** The variable with a path whose last part names the node. An engine gets its agent's path. */
export const nodeVariable = "WEICHE_DATA_DIR";
