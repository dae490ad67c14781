/** Opens the public API. */
import { formatListen } from "@weiche/shared/http/listen.ts";
import { openTlsFiles } from "@weiche/shared/http/tls-files.ts";
import { returnMemory } from "@weiche/shared/program/memory-return.ts";
import type { FinishedRequest } from "./api/exchange.ts";
import { RecentRequests } from "./api/recent-requests.ts";
import { createApiServer } from "./api/server.ts";
import { unansweredOf } from "./api/unanswered.ts";
import type { Core } from "./core.ts";
import { beginModelsAtZero } from "./counters-at-zero.ts";
import { createApiEvents } from "./events.ts";
import type { Limits } from "./open-limits.ts";
import type { Nodes } from "./open-nodes.ts";
import type { Storage } from "./open-storage.ts";

export type PublicApi = Awaited<ReturnType<typeof openApi>>;

export async function openApi(
  core: Core,
  { keys, voids, refusals, unanswered }: Storage,
  { limiter }: Limits,
  nodes: Nodes,
) {
  const { config, clock, log, metrics, catalogue, opened } = core;
  /** The portal uses the same certificate. If undefined, both serve plain HTTP behind a proxy. */
  const tls = config.tls && opened.use(openTlsFiles(config.tls, clock, core.events));
  const recent = new RecentRequests();
  const remember = (facts: FinishedRequest) => {
    recent.remember(facts);
    const listed = unansweredOf(facts);
    if (listed) unanswered.add(listed);
  };
  const events = createApiEvents(log, metrics, refusals, { remember });
  const beginAtZero = () => beginModelsAtZero(metrics, catalogue.get().values());
  beginAtZero();
  catalogue.onReload(beginAtZero);
  const server = createApiServer({
    ...{ config, clock, events, tls, keys, limiter },
    catalogue: catalogue.get,
    place: nodes.place,
    began: nodes.began,
    upstream: nodes.data,
    verdicts: {
      settled: (attempt) => nodes.link.settled(attempt.node, attempt),
      declareVoid: (attempt) => voids.declare(attempt),
      declareRefused: (attempt) => voids.declareRefused(attempt),
    },
  });
  const address = await server.listen();
  opened.use(returnMemory(clock, () => server.open));
  /** The base URL for clients, without `/v1`. */
  const url = config.publicApi ?? `http${tls ? "s" : ""}://${formatListen(address)}`;
  return { server, address, url, tls, events, recent };
}
