/** Opens the router's parts for nodes: links, data connections, registry and placement. */
import { formatListen } from "@weiche/shared/http/listen.ts";
import { openTlsFiles } from "@weiche/shared/http/tls-files.ts";
import { asId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import type { NodesMetrics } from "@weiche/shared/program/ops-server.ts";
import { routersMax } from "@weiche/shared/wire/link-bounds.ts";
import { LoopClock } from "@weiche/shared/time/loop-clock.ts";
import type { Core } from "./core.ts";
import { linkAddressOf } from "./config/config-rules.ts";
import { addressesOf, type LiveRouter } from "./db/live-routers.ts";
import { DataConnections } from "./nodes/data-connections.ts";
import { openNodeLink } from "./nodes/node-link.ts";
import { openNodeWishes, readWishesMs } from "./nodes/node-wishes.ts";
import type { AttemptEnd, Attempted } from "./nodes/outcomes/outcomes.ts";
import { place, type PlacementRequest } from "./nodes/placement.ts";
import { StrangerLimit } from "./nodes/stranger-limit.ts";
import { readTrusted } from "./edge/client-address.ts";
import { NodeRegistry } from "./nodes/registry.ts";
import type { Storage } from "./open-storage.ts";

export type Nodes = Awaited<ReturnType<typeof openNodes>>;

/** The timeout for closing links and data connections after the last answer has ended. */
const closeMsMax = 2_000;

export async function openNodes(core: Core, { database, grants, ledger }: Storage, routers: LiveRouter) {
  const { config, clock, random, events, job, routerId, catalogue, opened } = core;
  const wishes = await openNodeWishes(database);
  opened.use(job("node-wishes", readWishesMs, () => wishes.read()));
  const registry = new NodeRegistry((node) => wishes.isMaintained(node), events);
  const linkClock = opened.use(new LoopClock(clock));
  /** If undefined, connections are plain and nodes run on this host. */
  const tls = config.nodesTls && opened.use(openTlsFiles(config.nodesTls, clock, events));
  const strangers = tls && new StrangerLimit(clock, readTrusted(config.limits.trustedProxies));
  const shared = { routerId, clock: linkClock, events, tls, strangers };

  const data = await DataConnections.open({ ...shared, listen: config.listen.data, counts: registry, grants });
  opened.defer(() => data.close(closeMsMax));
  const dataAddress = config.dataAdvertise ?? formatListen(data.address);
  const link = await openNodeLink({
    ...shared,
    listen: config.listen.nodes,
    dataAddress,
    routers: () => addressesOf(routers.routers()).slice(0, routersMax),
    job,
    registry,
    ledger,
    ledgerName: routers.ledger,
    rulesOf: catalogue.rulesOf,
    mayHost: catalogue.mayHost,
    desiredStateOf: (node) => wishes.of(node),
    onBoot: (node, bootId) => data.dropEarlierBoots(node, bootId),
  });
  opened.defer(() => link.close(closeMsMax));
  wishes.onChange((node) => link.desiredStateChanged(node));
  catalogue.onReload(() => link.rulesChanged());
  routers.onChange(() => link.routersChanged());

  /** Returns the monotonic time of the views in ms. This clock stops while the event loop is blocked. */
  const nowMs = () => linkClock.monotonicMs();
  const views = () => registry.view(nowMs());
  const details = () => registry.details(nowMs());
  /** Fetches the nodes' own metrics over their data connections. */
  const metrics: NodesMetrics = {
    names: () => views().map(({ node }) => node),
    metricsOf: (node) => data.metricsOf(asId(node)),
  };
  return {
    ...{ wishes, link, data, tls, views, details, metrics, nowMs },
    /** Returns the nodes that can receive requests. */
    reached: () => views().flatMap(({ node, reachable }) => (reachable ? [node] : [])),
    /** The host:port that nodes dial. `link` is undefined if no address is known under which others reach this router. */
    addresses: { link: linkAddressOf(config, link.address), data: dataAddress },
    /** Returns how long recent requests waited for this model to become active, or undefined if none waited. */
    usualWaitMs: (model: ModelId) => registry.waits.usualMs(model, nowMs()),
    place: (request: PlacementRequest, exclude?: ReadonlySet<NodeId>) =>
      place(request, views(), nowMs(), random, exclude),
    /** Notes that an attempt begins. Call it before sending, and call the returned function with the attempt's end. */
    began: (at: Attempted) => {
      const ended = registry.began(at, nowMs());
      return (end: AttemptEnd | "overloaded") => ended(end, nowMs());
    },
  };
}
