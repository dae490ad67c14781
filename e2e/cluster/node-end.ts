/** Opens a router's end of links and data connections in this process, without API, keys, limits and database. */
import { randomBytes } from "node:crypto";
import { createGrants } from "@weiche/router/src/usage/grants.ts";
import { DataConnections } from "@weiche/router/src/nodes/data-connections.ts";
import { openNodeLink, type NodeLink } from "@weiche/router/src/nodes/node-link.ts";
import { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { rulesOf, type CatalogueEntry } from "@weiche/shared/catalogue.ts";
import { systemClock as clock } from "@weiche/shared/time/clock.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { plainJobs } from "@weiche/shared/testing/plain-jobs.ts";

export interface NodeEnd extends AsyncDisposable {
  readonly registry: NodeRegistry;
  readonly data: DataConnections;
  readonly link: NodeLink;
  /** The address at which agents dial the link. */
  readonly address: string;
}

/**
 * Opens the router's end. Every node may host every model. Usage is acknowledged when `record` resolves. `dataAddress`: the
 * address at which nodes dial data connections. Defaults to this end.
 */
export async function openNodeEnd(
  catalogue: ReadonlyMap<string, CatalogueEntry>,
  record: () => Promise<void> = async () => {},
  dataAddress?: string,
): Promise<NodeEnd> {
  const registry = new NodeRegistry();
  const events = new Proxy({}, { get: () => () => {} }) as never;
  const shared = { routerId: uuidv7(clock), clock, events, listen: { host: "127.0.0.1", port: 0 } };
  const data = await DataConnections.open({ ...shared, counts: registry, grants: createGrants(randomBytes(32)) });
  const link = await openNodeLink({
    ledgerName: () => "ledger",
    routers: () => [],
    ...{ ...shared, registry, job: plainJobs(clock), ledger: { record } },
    dataAddress: dataAddress ?? `127.0.0.1:${data.address.port}`,
    rulesOf: () => catalogue.values().map(rulesOf).toArray(),
    mayHost: () => true,
    desiredStateOf: () => undefined,
    onBoot: (node, bootId) => data.dropEarlierBoots(node, bootId),
  });
  return {
    ...{ registry, data, link, address: `127.0.0.1:${link.address.port}` },
    [Symbol.asyncDispose]: async () => void (await Promise.all([link.close(0), data.close(0)])),
  };
}
