/**
 * The operators' wishes for nodes: maintenance and models to prewarm. Each router reads them from the database
 * periodically, so that all routers send nodes the same wishes. While the database is away, the last known wishes
 * apply.
 */
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import type { DesiredState } from "@weiche/proto/weiche/node/v1/node_control.ts";

/** The interval between reads. */
export const readWishesMs = 2_000;

export type NodeWishes = Awaited<ReturnType<typeof openNodeWishes>>;

/** Resolves once the stored wishes are loaded. */
export async function openNodeWishes({ pool }: Database) {
  const states = new Map<NodeId, DesiredState>();
  let changed: (node: NodeId) => void = () => {};

  async function read(): Promise<void> {
    const { rows } = await pool.query<Row>(
      `select node, generation, maintenance, case when prewarm_until > now() then prewarm_model end as prewarm
       from node_wishes`,
    );
    for (const { node, generation, maintenance, prewarm } of rows) {
      const known = states.get(node)?.generation ?? -1n;
      if (generation < known) continue; // a later query has returned earlier
      states.set(node, { generation, maintenance, prewarmModels: prewarm === null ? [] : [prewarm] });
      if (generation > known) changed(node);
    }
  }

  /**
   * Sets a node's wishes. `maintenance` null leaves the maintenance unchanged. Replaces the model to prewarm. Resolves
   * once this router has notified its nodes.
   */
  async function write(node: NodeId, maintenance: boolean | null, model: ModelId | null): Promise<void> {
    await pool.query(
      `insert into node_wishes as known
       values ($1, floor(extract(epoch from now()) * 1000), coalesce($2, false), $3, now() + interval '1 minute')
       on conflict (node) do update set
         generation = greatest(known.generation + 1, excluded.generation),
         maintenance = coalesce($2, known.maintenance),
         prewarm_model = excluded.prewarm_model,
         prewarm_until = excluded.prewarm_until`,
      [node, maintenance, model],
    );
    await read();
  }

  await read();
  return {
    read,
    of: (node: NodeId) => states.get(node),
    isMaintained: (node: NodeId) => states.get(node)?.maintenance ?? false,
    setMaintenance: (node: NodeId, on: boolean) => write(node, on, null),
    prewarm: (node: NodeId, model: ModelId) => write(node, null, model),
    /** Calls back when the wishes of a node change, also if another router changed them. */
    onChange(callback: (node: NodeId) => void) {
      changed = callback;
    },
  };
}

interface Row {
  readonly node: NodeId;
  readonly generation: bigint;
  readonly maintenance: boolean;
  readonly prewarm: ModelId | null;
}
