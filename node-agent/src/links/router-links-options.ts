/** The events and options of the links to the routers. */
import type { DesiredState } from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { UsageDelivery } from "../outbox/delivery.ts";
import type { RouterLives } from "../outbox/unsettled-answers.ts";
import type { DataLinkEvents } from "./data-link.ts";
import type { StreamHandler } from "./data-connection.ts";
import type { KnownRouters } from "./known-routers.ts";
import type { Resolve, RouterAddressesEvents } from "./router-addresses.ts";
import type { RouterLinkOptions } from "./router-link.ts";

export interface RouterLinkEvents extends DataLinkEvents, RouterAddressesEvents {
  /** `version`: the router's version. Undefined if it reports none. */
  routerLinkUp(address: string, routerId: string, version?: string): void;
  routerLinkDown(address: string, routerId: string, reason: string): void;
  /** No welcome came. Emitted when the reason changes. */
  routerLinkFailed(address: string, reason: string): void;
  rulesUnreadable(model: string, reason: string): void;
}

export interface RouterLinksOptions extends RouterLinkOptions {
  /** host:port, as configured. */
  readonly routers: readonly string[];
  /** The routers that other routers have announced. */
  readonly known: KnownRouters;
  readonly random: () => number;
  readonly resolve: Resolve;
  readonly usage: Pick<UsageDelivery, "linkUp" | "acknowledged" | "linkDown" | "committedTo">;
  readonly answers: RouterLives;
  /** Handles the requests that arrive on the data connections. */
  readonly handle: StreamHandler;
  /** Gets the rules of all models of the node. The latest rules apply, whichever router sent them. */
  readonly onRules: (rules: readonly ModelRules[]) => void;
  /** Called only if the generation is higher than before. */
  readonly onDesiredState: (state: DesiredState) => void;
  readonly events: RouterLinkEvents;
}
