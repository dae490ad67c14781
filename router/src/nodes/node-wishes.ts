/**
 * What operators want of the nodes: kept in the database and read again every 2 s, so that every router comes to tell its
 * nodes the same. With the database away what is known goes on.
 */
import { every, type Clock } from "@weiche/shared/time/clock.ts";
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import type { DesiredState } from "./desired-state.ts";

export interface NodeWishEvents {
  nodeWishesUnreadable(error: unknown): void;
}

const readEveryMs = 2_000;

/** Resolves once the wishes of before are known. */
export async function openNodeWishes(
  database: Pick<Database, "pool">,
  clock: Clock,
  events: NodeWishEvents,
): Promise<NodeWishes> {
  const wishes = new NodeWishes(database, clock, events);
  await wishes.read();
  return wishes;
}

export class NodeWishes implements AsyncDisposable {
  readonly #pool: Database["pool"];
  readonly #reading: { cancel(): void };
  readonly #states = new Map<NodeId, DesiredState>();
  #running: Promise<void> = Promise.resolve();
  #onChange: (node: NodeId) => void = () => {};

  constructor({ pool }: Pick<Database, "pool">, clock: Clock, events: NodeWishEvents) {
    this.#pool = pool;
    this.#reading = every(clock, readEveryMs, () => {
      this.#running = this.read().catch((error: unknown) => events.nodeWishesUnreadable(error));
      return this.#running;
    });
  }

  of(node: NodeId): DesiredState | undefined {
    return this.#states.get(node);
  }

  isMaintained(node: NodeId): boolean {
    return this.#states.get(node)?.maintenance ?? false;
  }

  /** Calls back when more is known of a node, whichever router was told. */
  onChange(callback: (node: NodeId) => void): void {
    this.#onChange = callback;
  }

  /** Resolves once it is kept and this router's nodes are told. */
  setMaintenance(node: NodeId, on: boolean): Promise<void> {
    return this.#write(node, on, null);
  }

  prewarm(node: NodeId, model: ModelId): Promise<void> {
    return this.#write(node, null, model);
  }

  async read(): Promise<void> {
    const { rows } = await this.#pool.query<Row>(
      `select node, generation, maintenance, case when prewarm_until > now() then prewarm_model end as prewarm
       from node_wishes`,
    );
    for (const { node, generation, maintenance, prewarm } of rows) {
      const known = this.#states.get(node)?.generation ?? -1n;
      if (generation < known) continue; // an answer that was overtaken
      this.#states.set(node, { generation, maintenance, prewarmModels: prewarm === null ? [] : [prewarm] });
      if (generation > known) this.#onChange(node);
    }
  }

  /** `null` leaves maintenance as it is; what was to be prewarmed before is forgotten. */
  async #write(node: NodeId, maintenance: boolean | null, model: ModelId | null): Promise<void> {
    await this.#pool.query(
      `insert into node_wishes as known
       values ($1, floor(extract(epoch from now()) * 1000), coalesce($2, false), $3, now() + interval '1 minute')
       on conflict (node) do update set
         generation = greatest(known.generation + 1, excluded.generation),
         maintenance = coalesce($2, known.maintenance),
         prewarm_model = excluded.prewarm_model,
         prewarm_until = excluded.prewarm_until`,
      [node, maintenance, model],
    );
    await this.read();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#reading.cancel();
    await this.#running;
  }
}

interface Row {
  readonly node: NodeId;
  readonly generation: bigint;
  readonly maintenance: boolean;
  readonly prewarm: ModelId | null;
}
