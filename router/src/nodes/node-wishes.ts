/**
 * What operators want of the nodes: kept in the database and read again and again, so that every router comes to tell its
 * nodes the same. With the database away what is known goes on.
 */
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import type { DesiredState } from "@weiche/proto/weiche/node/v1/node_control.ts";

/** How often they are read. */
export const readWishesMs = 2_000;

/** Resolves once the wishes of before are known. */
export async function openNodeWishes(database: Pick<Database, "pool">): Promise<NodeWishes> {
  const wishes = new NodeWishes(database);
  await wishes.read();
  return wishes;
}

export class NodeWishes {
  readonly #pool: Database["pool"];
  readonly #states = new Map<NodeId, DesiredState>();
  #onChange: (node: NodeId) => void = () => {};

  constructor({ pool }: Pick<Database, "pool">) {
    this.#pool = pool;
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
}

interface Row {
  readonly node: NodeId;
  readonly generation: bigint;
  readonly maintenance: boolean;
  readonly prewarm: ModelId | null;
}
