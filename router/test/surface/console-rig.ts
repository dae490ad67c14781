/** The real console and portal with the same handlers and a real database, and nodes that a test describes. */
import { rmSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { SlotState } from "../../src/nodes/node-view.ts";
import type { NodeDetail } from "../../src/nodes/registry.ts";
import { consoleCookieName } from "../../src/surface/server/session-cookie.ts";
import { openConsole } from "../../src/surface/console/console-server.ts";
import { ConsoleSessions } from "../../src/surface/console/console-sessions.ts";
import { OwnCapacity } from "../../src/simulate/own/own-capacity.ts";
import type { HandlerDeps } from "../../src/surface/routes/handler-deps.ts";
import { startPortal, type PortalRig } from "./portal-rig.ts";

export interface ConsoleRig extends AsyncDisposable {
  readonly portal: PortalRig;
  readonly origin: string;
  readonly sessions: ConsoleSessions;
  /** Directory of the session file. */
  readonly directory: string;
  /** The operators' wishes, such as `maintenance gpu-1 true`. */
  readonly wishes: string[];
  /** Makes a link as `weiche console` does. */
  link(): string;
  /** Signs in. Returns the cookie. */
  signIn(): Promise<string>;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Sends a change from the console's own page. */
  send(method: string, path: string, body: unknown, cookie?: string): Promise<Response>;
}

interface ConsoleWish {
  readonly clock?: Clock;
  readonly details?: () => readonly NodeDetail[];
  readonly parts?: Partial<HandlerDeps>;
}

export async function startConsole({
  clock = systemClock,
  details = () => [],
  parts = {},
}: ConsoleWish = {}): Promise<ConsoleRig> {
  await using opened = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "weiche-console-"));
  opened.defer(() => rmSync(directory, { recursive: true }));
  const failures: unknown[] = [];
  const sessions = opened.use(
    new ConsoleSessions(join(directory, "sessions.json"), clock, {
      consoleSessionsNotSaved: (error) => void failures.push(error),
    }),
  );
  const wishes: string[] = [];
  let url = "";
  const portal = opened.use(
    await startPortal({
      clock,
      parts: (database) => ({
        fleet: {
          details,
          wishes: {
            of: () => undefined,
            setMaintenance: async (node: NodeId, on: boolean) => void wishes.push(`maintenance ${node} ${on}`),
            acknowledge: async (node, number) => void wishes.push(`acknowledge ${node} ${number}`),
            prewarm: async (node, model) => void wishes.push(`prewarm ${node} ${model}`),
          },
          place: () => ({ refused: "no_node_available" }),
          nowMs: () => clock.monotonicMs(),
        },
        console: {
          get url() {
            return url;
          },
          sessions,
          pipeline: {
            waitingForCommit: () => 3,
            jobRanAtMs: () => clock.now(),
            evaluateMs: 60_000,
            keysAgeMs: () => 200,
          },
          capacity: new OwnCapacity({
            ...{ pool: database.pool, clock, details, routers: () => 1 },
            events: { capacityFailed: (error) => void failures.push(error) },
          }),
        },
        ...parts,
      }),
    }),
  );
  const console = opened.use(
    await openConsole({
      listen: { host: "127.0.0.1", port: 0 },
      limits: { perIpPerSecond: 0, perIpBurst: 20, trustedProxies: [] },
      ...{ sessions, clock, database: portal.database },
      events: {
        requestFailed: (_id, error) => void failures.push(error),
        databaseUnavailable() {},
        connectionRefused() {},
        forwardedUnread() {},
      },
    }),
  );
  await console.serve(portal.handlers);
  url = console.url;
  const link = () => `${url}/sign-in#${sessions.makeCode().code}`;
  const request = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(url + path, init);
    if (failures.length > 0) throw failures[0];
    return response;
  };
  const send: ConsoleRig["send"] = (method, path, body, cookie) =>
    request(`/api${path}`, {
      method,
      headers: { origin: url, "content-type": "application/json", ...(cookie && { cookie }) },
      body: JSON.stringify(body),
    });
  const closing = opened.move();
  return {
    ...{ portal, sessions, directory, wishes, link, send },
    origin: url,
    fetch: request,
    async signIn() {
      const answer = await send("POST", "/console/session", { code: link().split("#")[1] });
      return answer.headers.get("set-cookie")!.split(";")[0]!;
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

export const cookieOf = (token: string): string => `${consoleCookieName(false)}=${token}`;

/** A linked node without requests. */
export function quietNode(name: string, more: Partial<NodeDetail> = {}): NodeDetail {
  const node = asId<NodeId>(name);
  const hello = { node, bootId: "019aadea-0000-7000-8000-000000000000", agentVersion: "1.0.0", slots: [] };
  const state = { reachable: true, reportedAtMs: 0, admitting: true, maintenance: false, slots: [] };
  return {
    view: { node, ...state },
    hello,
    linked: true,
    dataConnections: 1,
    report: undefined,
    linkedAtMs: 0,
    histories: new Map(),
    failures: new Map(),
    ...more,
  };
}

/** Returns a node whose one slot serves a model. */
export function nodeWithSlot(more: object = {}, histories: NodeDetail["histories"] = new Map()) {
  const node = quietNode("gpu-1", { histories });
  return { ...node, view: { ...node.view, slots: [{ ...slot, ...more }] } };
}

const slot = {
  name: asId<SlotName>("a"),
  models: [asId<ModelId>("m1"), asId<ModelId>("m2")],
  ...{
    state: SlotState.ACTIVE,
    activeModel: asId<ModelId>("m1"),
    running: 1,
    runningOfRouter: 1,
    inFlight: 1,
    unread: 0,
  },
  ...{ waiting: 0, waiters: [], stateAgeMs: 5_000 },
};

export interface ConsoleEvent {
  readonly name: string;
  readonly data: { readonly asOf: string; readonly items?: Readonly<Record<string, any>> };
}

/** Yields a stream's events until the test stops. */
export async function* consoleEvents(
  rig: Pick<ConsoleRig, "fetch">,
  query: string,
  cookie: string,
): AsyncGenerator<ConsoleEvent> {
  const stream = await rig.fetch(`/api/console/events?${query}`, { headers: { cookie } });
  expect([stream.status, stream.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  let text = "";
  for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      if (name) yield { name, data: JSON.parse(data!) };
    }
  }
}
