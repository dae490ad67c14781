/** Opens the public API. */
import { formatListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import { openTlsFiles, type TlsFiles } from "@weiche/shared/http/tls-files.ts";
import { returnMemory } from "@weiche/shared/program/memory-return.ts";
import { createApiServer, type ApiServer } from "./api/server.ts";
import type { Core } from "./core.ts";
import { beginRequestsAtZero } from "./counters-at-zero.ts";
import { createApiEvents } from "./events.ts";
import type { ApiEvents } from "./api/exchange.ts";
import type { Nodes } from "./open-nodes.ts";
import type { Storage } from "./open-storage.ts";

export interface PublicApi {
  readonly server: ApiServer;
  readonly address: ListenAddress;
  /** Base URL for clients, without `/v1`. */
  readonly url: string;
  /** Its certificate, which the portal shows too. Absent: plain HTTP behind a proxy. */
  readonly tls: TlsFiles | undefined;
  readonly events: ApiEvents;
}

export async function openApi(core: Core, { keys, voids, refusals }: Storage, nodes: Nodes): Promise<PublicApi> {
  const { config, clock, log, metrics, limiter, catalogue, opened } = core;
  const tls = config.tls && opened.use(openTlsFiles(config.tls, clock, core.events));
  const events = createApiEvents(log, metrics, refusals);
  const beginAtZero = () => beginRequestsAtZero(metrics.requests, catalogue.get().values());
  beginAtZero();
  catalogue.onReload(beginAtZero);
  const server = createApiServer({
    ...{ config, clock, events, tls, keys, limiter },
    catalogue: catalogue.get,
    place: nodes.place,
    upstream: nodes.data,
    verdicts: {
      settled: (attempt) => nodes.link.settled(attempt.node, attempt),
      declareVoid: (attempt) => voids.declare(attempt),
    },
  });
  const address = await server.listen();
  opened.use(returnMemory(clock, () => server.open));
  const url = config.publicApi ?? `http${tls ? "s" : ""}://${formatListen(address)}`;
  return { server, address, url, tls, events };
}
