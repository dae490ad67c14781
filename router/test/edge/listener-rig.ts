/** Starts a public listener of a router, API or portal, without the parts behind it. */
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { ListenerTimes, ServerCertificate } from "../../src/edge/listener.ts";
import type { Handlers } from "../../src/surface/server/add-routes.ts";
import { contract, type Contract } from "../../src/surface/contract/contract.ts";
import { openPortal } from "../../src/surface/portal/portal-server.ts";
import { startApi } from "../api/api-harness.ts";

export type ListenerKind = "api" | "portal";

interface ListenerWish {
  readonly times?: Partial<ListenerTimes>;
  readonly tls?: ServerCertificate;
  readonly limits?: { readonly perIpPerSecond: number; readonly perIpBurst: number };
  /** The portal's time limit for receiving a request. */
  readonly requestMsMax?: number;
}

interface Listener extends AsyncDisposable {
  readonly port: number;
}

export async function startListener(kind: ListenerKind, { limits, ...wish }: ListenerWish = {}): Promise<Listener> {
  if (kind === "api") return await startApi({ ...wish, ...(limits ? { limits } : {}) });
  const nothing = () => Promise.reject(new Error("nothing behind this portal"));
  const handlers = Object.fromEntries(Object.keys(contract).map((name) => [name, nothing]));
  const portal = await openPortal({
    listen: { host: "127.0.0.1", port: 0 },
    apiUrl: "https://api.example",
    limits: { perIpPerSecond: 0, perIpBurst: 20, ...limits, trustedProxies: [] },
    sessions: { find: () => Promise.resolve(undefined) },
    clock: systemClock,
    events: { requestFailed() {}, databaseUnavailable() {}, connectionRefused() {}, forwardedUnread() {} },
    ...wish,
  });
  await portal.serve(handlers as unknown as Handlers<Contract>);
  return { port: portal.address.port, [Symbol.asyncDispose]: () => portal[Symbol.asyncDispose]() };
}
