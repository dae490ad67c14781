/**
 * Runs the router without keys, limits, database and metering: `bare-router.ts CATALOGUE`. Its listener, relay and links are
 * the real ones, so its difference to the whole router is the cost of the omitted parts. Prints its addresses.
 */
import { RecentRequests } from "@weiche/router/src/api/recent-requests.ts";
import { createApiServer } from "@weiche/router/src/api/server.ts";
import { loadCatalogue } from "@weiche/router/src/config/config.ts";
import { createApiEvents } from "@weiche/router/src/events.ts";
import { createMetrics } from "@weiche/router/src/metrics.ts";
import { place } from "@weiche/router/src/nodes/placement.ts";
import { systemClock as clock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7 } from "@weiche/shared/ids.ts";
import { createLog } from "@weiche/shared/program/log.ts";
import { openNodeEnd } from "../../../e2e/cluster/node-end.ts";

const { catalogue } = loadCatalogue(process.argv[2]!);
const { registry, data, link, address } = await openNodeEnd(catalogue);
const nobody = asId<never>(uuidv7(clock));
const anyone = {
  ...{ accountId: nobody, userId: nobody, keyId: nobody, allowedModels: undefined },
  ...{ requestsPerMinute: Infinity, parallelRequests: Infinity },
};
const api = createApiServer({
  config: {
    limits: { perIpPerSecond: 0, perIpBurst: 1, trustedProxies: [] },
    requestMsMax: 600_000,
    listen: { api: { host: "127.0.0.1", port: 0 } },
  },
  keys: { find: () => anyone },
  limiter: { enter: () => ({ admitted: true }), leave: () => {}, use: () => ({ lastMinute: 0, parallel: 0 }) },
  catalogue: () => catalogue,
  place: (request, exclude) =>
    place(request, registry.view(clock.monotonicMs()), clock.monotonicMs(), Math.random, exclude),
  began(at) {
    const ended = registry.began(at, clock.monotonicMs());
    return (end) => ended(end, clock.monotonicMs());
  },
  upstream: data,
  verdicts: {
    settled: (attempt) => link.settled(attempt.node, attempt),
    declareVoid: () => {},
    declareRefused: () => {},
  },
  clock,
  events: createApiEvents(
    createLog("bare-router"),
    createMetrics(() => 0),
    { count: () => {} },
    new RecentRequests(),
  ),
});
const { port } = await api.listen();
console.log(JSON.stringify({ listen: { api: `127.0.0.1:${port}`, nodes: address } }));
