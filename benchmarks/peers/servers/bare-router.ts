/**
 * The router without what it is for: no keys, no limits, no database, nothing metered. Its listener, its relay and its
 * links to nodes are the real ones, so that the difference to the whole router is what keys, limits and metering cost.
 * CATALOGUE; prints {"listen":{…}}.
 */
import { randomBytes } from "node:crypto";
import { createApiServer } from "@weiche/router/src/api/server.ts";
import { loadCatalogue } from "@weiche/router/src/config/config.ts";
import { createApiEvents } from "@weiche/router/src/events.ts";
import { createMetrics } from "@weiche/router/src/metrics.ts";
import { createGrants } from "@weiche/router/src/usage/grants.ts";
import { openDataConnections } from "@weiche/router/src/nodes/data-connections.ts";
import { openNodeLink } from "@weiche/router/src/nodes/node-link.ts";
import { place } from "@weiche/router/src/nodes/placement.ts";
import { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { rulesOf } from "@weiche/shared/catalogue.ts";
import { systemClock as clock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7 } from "@weiche/shared/ids.ts";
import { createLog } from "@weiche/shared/program/log.ts";
import { plainJobs } from "@weiche/shared/testing/plain-jobs.ts";

const { catalogue } = loadCatalogue(process.argv[2]!);
const listen = { host: "127.0.0.1", port: 0 };
const silent = new Proxy({}, { get: () => () => {} }) as never;
const grants = createGrants(randomBytes(32));
const shared = { routerId: uuidv7(clock), clock, events: silent };
const registry = new NodeRegistry();
const data = await openDataConnections({ ...shared, listen, grants, counts: registry });
const nodes = await openNodeLink({
  ...{ ...shared, listen, registry, job: plainJobs(clock) },
  dataAddress: `127.0.0.1:${data.address.port}`,
  ledger: { record: async () => {} },
  rulesOf: (models) => models.flatMap((model) => catalogue.get(model) ?? []).map(rulesOf),
  mayHost: () => true,
  desiredStateOf: () => undefined,
  onBoot: (node, bootId) => data.dropEarlierBoots(node, bootId),
});
const nobody = asId<never>(uuidv7(clock));
const anyone = {
  ...{ accountId: nobody, userId: nobody, keyId: nobody, allowedModels: undefined },
  ...{ requestsPerMinute: Infinity, parallelRequests: Infinity },
};
const api = createApiServer({
  config: {
    limits: { perIpPerSecond: 0, perIpBurst: 1, trustedProxies: [] },
    requestMsMax: 600_000,
    listen: { api: listen },
  },
  keys: { find: () => anyone },
  limiter: { enter: () => ({ admitted: true }), leave: () => {}, use: () => ({ lastMinute: 0, parallel: 0 }) },
  catalogue: () => catalogue,
  place: (request, exclude) =>
    place(request, registry.view(clock.monotonicMs()), clock.monotonicMs(), Math.random, exclude),
  upstream: data,
  verdicts: { settled: (attempt) => nodes.settled(attempt.node, attempt), declareVoid: () => {} },
  clock,
  events: createApiEvents(
    createLog("bare-router"),
    createMetrics(() => 0),
    { count: () => {} },
  ),
});
const { port } = await api.listen();
console.log(JSON.stringify({ listen: { api: `127.0.0.1:${port}`, nodes: `127.0.0.1:${nodes.address.port}` } }));
