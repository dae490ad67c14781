/** Opens both ends of data connections in one process, for tests. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataLink } from "@weiche/node-agent/src/links/data-link.ts";
import type { StreamHandler } from "@weiche/node-agent/src/links/data-connection.ts";
import { makeAuthority, makeCertificate, type Making } from "@weiche/router/src/certificates/certificate-folder.ts";
import { createGrants } from "@weiche/router/src/usage/grants.ts";
import { DataConnections } from "@weiche/router/src/nodes/data-connections.ts";
import { NodeRegistry } from "@weiche/router/src/nodes/registry.ts";
import type { UpstreamRequest, UpstreamResponse } from "@weiche/router/src/nodes/upstream.ts";
import { SlotState } from "@weiche/router/src/nodes/node-view.ts";
import { sleep, systemClock } from "@weiche/shared/time/clock.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type AccountId, type KeyId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import type { RequestId, SlotName, UserId } from "@weiche/shared/ids.ts";
import type { Gone } from "@weiche/shared/frames/frame-stream.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { openTlsFiles, type TlsFiles, type TlsPaths } from "@weiche/shared/http/tls-files.ts";
import { toldEvents } from "@weiche/shared/testing/told-events.ts";

export const node = asId<NodeId>("gpu-1");
export const slot = asId<SlotName>("s");
export const random = createRandom(1);

export interface RouterEnd extends AsyncDisposable {
  readonly data: DataConnections;
  readonly registry: NodeRegistry;
  readonly told: unknown[][];
  send(given?: Partial<UpstreamRequest>, signal?: AbortSignal): Promise<UpstreamResponse>;
  /** The number of answers that have not ended. */
  inFlight(): number;
  /** The number of answers whose engine has not reported its end. */
  places(): number;
}

/** Grants with one secret, which the routers of one database share. */
export const grants = createGrants(randomBytes(32));

export async function openRouterEnd(given: { port?: number; tls?: TlsFiles } = {}): Promise<RouterEnd> {
  const registry = new NodeRegistry();
  const slots = [{ name: slot, models: [asId<ModelId>("m")] }];
  const link = registry.linkUp({ node, bootId: "boot", agentVersion: "0", slots }, 0);
  const report = { name: slot, state: SlotState.EMPTY, running: 0, runningOfRouter: 0, stateAgeMs: 0 } as const;
  link.report({ slots: [{ ...report, waiters: [] }], maintenance: false, admitting: true }, 0);
  const { events, told } = toldEvents<Parameters<typeof DataConnections.open>[0]["events"]>();
  const { tls } = given;
  const data = await DataConnections.open({
    listen: { host: "127.0.0.1", port: given.port ?? 0 },
    ...(tls ? { tls } : {}),
    routerId: "router-1",
    clock: systemClock,
    counts: registry,
    grants,
    events,
  });
  return {
    data,
    registry,
    told,
    send: (request = {}, signal = new AbortController().signal) => data.send(node, requestOf(request), signal),
    inFlight: () => slotOf(registry).inFlight + slotOf(registry).unread,
    places: () => slotOf(registry).inFlight,
    [Symbol.asyncDispose]: () => data.close(0),
  };
}

function slotOf(registry: NodeRegistry) {
  return registry.view(0)[0]!.slots[0]!;
}

export function requestOf(given: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return {
    path: nodePaths.chat,
    requestId: asId<RequestId>(uuidv7(systemClock)),
    attempt: 1,
    model: asId<ModelId>("m"),
    slot,
    billing: {
      accountId: asId<AccountId>("a"),
      userId: asId<UserId>("u"),
      keyId: asId<KeyId>("k"),
      factor: millicredits(1_500n),
    },
    tokensMax: 1_000_000,
    remainingMs: 600_000,
    body: Buffer.from("{}"),
    ...given,
  };
}

export function sessionsOf(router: RouterEnd): number {
  return router.registry.details(0)[0]!.dataConnections;
}

/** Resolves when the router has this number of data connections. */
export async function linked(router: RouterEnd, sessions = 1): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + 5_000;
  while (sessionsOf(router) !== sessions) {
    if (systemClock.monotonicMs() > deadlineMs) throw new Error(`not ${sessions} data connections within 5 s`);
    await sleep(systemClock, 5);
  }
}

interface AgentEnd extends AsyncDisposable {
  readonly link: DataLink;
  readonly told: unknown[][];
}

/** Opens an agent that dials this port, of the router or of a proxy. */
export function openAgentEnd(
  port: number,
  handle: StreamHandler,
  given: { tls?: TlsFiles; host?: string; node?: string } = {},
): AgentEnd {
  const { events, told } = toldEvents<ConstructorParameters<typeof DataLink>[0]["events"]>();
  const { tls } = given;
  const link = new DataLink({
    onConnections: () => {},
    routerId: "router-1",
    ...(tls ? { tls } : {}),
    clock: systemClock,
    random: () => random.next(),
    identity: { node: given.node ?? node, bootId: "boot" },
    handle,
    events,
  });
  link.dial(`${given.host ?? "127.0.0.1"}:${port}`);
  return { link, told, [Symbol.asyncDispose]: () => link.close(0) };
}

/** Answers each stream with the test's own code. */
export function byHand(answer: (stream: SimStream, record: readonly unknown[]) => void): StreamHandler {
  return (frames, record) => {
    const stream = SimStream.taken(frames);
    answer(stream, record);
    return stream;
  };
}

export function answering(text: string | Buffer): StreamHandler {
  return byHand((stream) => stream.answer(text));
}

/** Accepts streams, answers with a head and one chunk, and leaves the rest to the test. */
export function holding() {
  const streams: SimStream[] = [];
  /** Why each ended stream was lost, or undefined if it was answered. */
  const closed: (Gone | undefined)[] = [];
  const handle = byHand((stream) => {
    streams.push(stream);
    stream.once("over", () => closed.push(stream.lostBy));
    stream.begin();
    stream.frames.write("begun ");
  });
  return { streams, closed, handle };
}

/** Makes certificates in a temporary directory as an operator does. */
export class Certificates implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), "weiche-certificates-"));
  readonly #open: TlsFiles[] = [];

  constructor() {
    makeAuthority(this.#making());
  }

  router(...names: readonly [string, ...string[]]): TlsPaths {
    makeCertificate(this.#making(), "router", names, { replace: true });
    return this.paths(`router-${names[0]}`);
  }

  /** Makes a certificate that has expired. */
  expiredRouter(): TlsPaths {
    makeCertificate(this.#making(-1), "router", ["127.0.0.1"], { replace: true });
    return this.paths("router-127.0.0.1");
  }

  /** Makes a certificate. `days`: how long it is valid. A negative number makes an expired one. */
  node(name: string, days?: number): TlsPaths {
    makeCertificate(this.#making(days), "node", [name], { replace: true });
    return this.paths(`node-${name}`);
  }

  /** Renews a node's certificate with an end exact to the second. */
  endAt(name: string, until: Date): TlsPaths {
    return this.node(name, (until.getTime() - Date.now()) / 86_400_000);
  }

  #making(days?: number): Making {
    return { folder: this.directory, nowMs: Date.now(), days };
  }

  paths(name: string): TlsPaths {
    const path = join(this.directory, name);
    return { cert: `${path}.pem`, key: `${path}.key`, ca: join(this.directory, "ca.pem") };
  }

  /** Opens the files as router and agent do. They close with the directory. */
  open(paths: TlsPaths, events = toldEvents<Parameters<typeof openTlsFiles>[2]>().events): TlsFiles {
    const files = openTlsFiles(paths, systemClock, events);
    this.#open.push(files);
    return files;
  }

  [Symbol.dispose](): void {
    for (const files of this.#open) files[Symbol.dispose]();
    rmSync(this.directory, { recursive: true });
  }
}
