/**
 * The operators' wishes for nodes: maintenance, models to prewarm, and which engine failures are acknowledged. Each router reads them from the database
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
      `select node, generation, maintenance, case when prewarm_until > now() then prewarm_model end as prewarm,
         acknowledged_failure as "acknowledgedFailure"
       from node_wishes`,
    );
    for (const { node, generation, maintenance, prewarm, acknowledgedFailure } of rows) {
      const known = states.get(node)?.generation ?? -1n;
      if (generation < known) continue; // a later query has returned earlier
      const prewarmModels = prewarm === null ? [] : [prewarm];
      states.set(node, { generation, maintenance, prewarmModels, acknowledgedFailure });
      if (generation > known) changed(node);
    }
  }

  /**
   * Sets a node's wishes. Missing ones stay, but a model to prewarm is wished only once. Resolves once this router has
   * notified its nodes.
   */
  async function write(node: NodeId, { maintenance, model, acknowledged }: Wish): Promise<void> {
    await pool.query(
      `insert into node_wishes as known
         (node, generation, maintenance, prewarm_model, prewarm_until, acknowledged_failure)
       values ($1, floor(extract(epoch from now()) * 1000), coalesce($2, false), $3, now() + interval '1 minute',
         coalesce($4::bigint, 0))
       on conflict (node) do update set
         generation = greatest(known.generation + 1, excluded.generation),
         maintenance = coalesce($2, known.maintenance),
         prewarm_model = excluded.prewarm_model,
         prewarm_until = excluded.prewarm_until,
         acknowledged_failure = greatest(known.acknowledged_failure, excluded.acknowledged_failure)`,
      [node, maintenance, model, acknowledged],
    );
    await read();
  }

  await read();
  return {
    read,
    of: (node: NodeId) => states.get(node),
    isMaintained: (node: NodeId) => states.get(node)?.maintenance ?? false,
    setMaintenance: (node: NodeId, maintenance: boolean) => write(node, { maintenance }),
    prewarm: (node: NodeId, model: ModelId) => write(node, { model }),
    /** Acknowledges the node's engine failures up to this number. */
    acknowledge: (node: NodeId, acknowledged: bigint) => write(node, { acknowledged }),
    /** Calls back when the wishes of a node change, also if another router changed them. */
    onChange(callback: (node: NodeId) => void) {
      changed = callback;
    },
  };
}

interface Wish {
  readonly maintenance?: boolean;
  readonly model?: ModelId;
  readonly acknowledged?: bigint;
}

interface Row {
  readonly node: NodeId;
  readonly generation: bigint;
  readonly maintenance: boolean;
  readonly prewarm: ModelId | null;
  readonly acknowledgedFailure: bigint;
}
