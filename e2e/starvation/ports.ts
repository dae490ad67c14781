/** Returns the port of a listener of a cluster's router, as text for an attacker. */
import type { Cluster } from "../cluster/cluster.ts";

export function portOf({ router }: Cluster, listener: "api" | "portal" | "nodes" | "data"): string {
  return router.listen[listener]!.split(":").at(-1)!;
}
