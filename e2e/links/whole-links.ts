/**
 * Opens whole ends of router and agent, link and data connections, in one process. Only the slots and the database are
 * simulated.
 */
import { KnownRouters } from "@weiche/node-agent/src/links/known-routers.ts";
import type { NodeLoad } from "@weiche/node-agent/src/links/load.ts";
import { RouterLinks } from "@weiche/node-agent/src/links/router-links.ts";
import type { RouterLinkEvents } from "@weiche/node-agent/src/links/router-links-options.ts";
import type { StreamHandler } from "@weiche/node-agent/src/links/data-connection.ts";
import type { UsageChannel } from "@weiche/node-agent/src/outbox/usage-channel.ts";
import { DataConnections, type DataConnectionsEvents } from "@weiche/router/src/nodes/data-connections.ts";
import { openNodeLink, type NodeLink } from "@weiche/router/src/nodes/node-link.ts";
import type { NodeLinkEvents } from "@weiche/router/src/nodes/node-link-session.ts";
import { place, type Placement } from "@weiche/router/src/nodes/placement.ts";
import { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import { SlotState } from "@weiche/router/src/nodes/node-view.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { plainJobs } from "@weiche/shared/testing/plain-jobs.ts";
import { answering, grants, node, random, slot } from "./link-ends.ts";
import { toldEvents } from "@weiche/shared/testing/told-events.ts";

export const model = asId<ModelId>("m");

export interface WholeRouter extends AsyncDisposable {
  readonly link: NodeLink;
  readonly data: DataConnections;
  readonly registry: NodeRegistry;
  readonly told: unknown[][];
  readonly recorded: UsageRecord[];
  isReachable(): boolean;
  place(): Placement;
}

interface RouterPorts {
  readonly link: number;
  readonly data: number;
}

export async function openWholeRouter(
  given: { id?: string; ports?: RouterPorts; tls?: TlsFiles; dataAddress?: string } = {},
): Promise<WholeRouter> {
  const { id = "router-1", ports = { link: 0, data: 0 }, tls } = given;
  const registry = new NodeRegistry();
  const recorded: UsageRecord[] = [];
  const { events, told } = toldEvents<NodeLinkEvents & DataConnectionsEvents>();
  const secure = tls ? { tls } : {};
  const shared = { routerId: id, clock: systemClock, events, ...secure };
  const data = await DataConnections.open({ ...shared, listen: listenOn(ports.data), counts: registry, grants });
  const link = await openNodeLink({
    ledgerName: () => "ledger",
    routers: () => [],
    ...shared,
    job: plainJobs(systemClock),
    listen: listenOn(ports.link),
    dataAddress: given.dataAddress ?? `127.0.0.1:${data.address.port}`,
    registry,
    ledger: { record: async (_node, records) => void recorded.push(...records) },
    rulesOf: () => [],
    mayHost: () => true,
    desiredStateOf: () => undefined,
    onBoot: (named, bootId) => data.dropEarlierBoots(named, bootId),
  });
  const now = () => systemClock.monotonicMs();
  return {
    link,
    data,
    registry,
    told,
    recorded,
    isReachable: () => registry.view(now())[0]?.reachable ?? false,
    place: () => place({ model }, registry.view(now()), now(), () => random.next()),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([link.close(0), data.close(0)]);
    },
  };
}

function listenOn(port: number) {
  return { host: "127.0.0.1", port };
}

export interface WholeAgent extends AsyncDisposable {
  readonly links: RouterLinks;
  readonly told: unknown[][];
  /** The open channels. */
  readonly channels: Map<string, UsageChannel>;
  readonly acknowledged: bigint[];
}

export function openWholeAgent(
  routers: readonly string[],
  given: { node?: string; tls?: TlsFiles; bootId?: string; handle?: StreamHandler; load?: Partial<NodeLoad> } = {},
): WholeAgent {
  const { tls } = given;
  const { events, told } = toldEvents<RouterLinkEvents>();
  const channels = new Map<string, UsageChannel>();
  const acknowledged: bigint[] = [];
  const links = new RouterLinks({
    routers,
    known: new KnownRouters(),
    ...(tls ? { tls } : {}),
    clock: systemClock,
    random: () => random.next(),
    hello: {
      node: asId<NodeId>(given.node ?? node),
      bootId: given.bootId ?? uuidv7(systemClock),
      agentVersion: "0",
      slots: [{ name: slot, models: [model], engines: [] }],
    },
    answers: { linkUp() {}, linkDown() {}, replaced() {}, settled() {}, dataConnections() {} },
    load: () => ({
      slots: [
        {
          name: slot,
          models: [model],
          state: SlotState.ACTIVE,
          activeModel: model,
          running: 0,
          runningByRouter: new Map(),
          waiting: 0,
          waiters: [],
          stateAgeMs: 0,
          maxConcurrent: 8,
          sleepers: [],
        },
      ],
      engines: new Map(),
      maintenance: false,
      admitting: true,
      ...given.load,
    }),
    resolve: async () => ["127.0.0.1"],
    usage: {
      linkUp: (channel) => channels.set(channel.routerId, channel),
      acknowledged: (_routerId, batchId) => acknowledged.push(batchId),
      linkDown: (routerId) => channels.delete(routerId),
      committedTo() {},
    },
    handle: given.handle ?? answering("hello"),
    onRules: () => {},
    onDesiredState: () => {},
    events,
  });
  return { links, told, channels, acknowledged, [Symbol.asyncDispose]: () => links.close() };
}

export function addressOf(router: WholeRouter, host = "127.0.0.1"): string {
  return `${host}:${router.link.address.port}`;
}
