/** The parts of the router that the handlers of the contract show and change. */
import type { Catalogue } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import type { NodeRequest } from "@weiche/shared/node-protocol.ts";
import type { CertificatesInUse } from "@weiche/shared/program/certificate-expiry.ts";
import type { LogLevelSwitch } from "@weiche/shared/program/log-level.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import type { Identity } from "../../accounts/identity.ts";
import type { Exchange } from "../../api/exchange.ts";
import type { RecentRequests } from "../../api/recent-requests.ts";
import type { ApiServer } from "../../api/server.ts";
import type { Database } from "../../db/database.ts";
import type { KnownRouter } from "../../db/live-routers.ts";
import type { IpLimitSettings } from "../../edge/ip-limit.ts";
import type { LimitStoreView } from "../../limits/limit-store.ts";
import type { Limiter } from "../../limits/limiter.ts";
import type { NodeView } from "../../nodes/node-view.ts";
import type { NodeWishes } from "../../nodes/node-wishes.ts";
import type { Placement } from "../../nodes/placement.ts";
import type { NodeDetail } from "../../nodes/registry.ts";
import type { Evaluator } from "../../usage/evaluator.ts";
import type { ConsoleSessions } from "../console/console-sessions.ts";
import type { ExportPlaces } from "./export-places.ts";

export interface HandlerDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly accounts: Accounts;
  readonly identity: Identity;
  readonly limiter: Pick<Limiter, "use">;
  readonly evaluator: Evaluator;
  readonly exports: ExportPlaces;
  /** Base URL of the public API, without `/v1`. */
  readonly apiUrl: string;
  /** The limits of the public API. */
  readonly apiLimits: IpLimitSettings & { readonly requestMsMax: number };
  readonly catalogue: () => Catalogue;
  /** Ids of the models of the catalogue. */
  readonly models: () => Iterable<string>;
  /** The catalogue's changelog for customers, newest first. */
  readonly changes: () => readonly ServiceChange[];
  /** Throws a `StartError` with the mistakes if the file is wrong; the current catalogue stays then. */
  readonly reloadCatalogue: () => Promise<void>;
  readonly nodes: () => readonly NodeView[];
  /** How long requests waited lately for this model to become active. undefined: none has. */
  readonly usualWaitMs: (model: ModelId) => number | undefined;
  readonly fleet: Fleet;
  readonly requests: Requests;
  readonly overview: Overview;
  readonly logLevel: Pick<LogLevelSwitch, "state" | "set">;
  readonly chat: ApiServer["chat"];
  /** Absent: the console is off. */
  readonly console?: ConsoleParts | undefined;
}

/** The router, as operators look at it. */
export interface Overview {
  /** Wall time in ms. */
  readonly startedAtMs: number;
  /** Addresses by the listener's name. */
  readonly listeners: Readonly<Record<string, string>>;
  readonly databaseServer: "embedded" | "configured";
  readonly routers: RoutersOverview;
  /** Absent: each router counts the limits of accounts by itself. */
  readonly limitStore?: LimitStoreView | undefined;
  readonly certificates: CertificatesInUse<string>;
}

/** The routers of the database, as of the last heartbeat. */
export interface RoutersOverview {
  readonly all: () => readonly KnownRouter[];
  /** How many there are besides this one. */
  readonly others: () => number;
  /** Id of this one. */
  readonly own: string;
}

/** The requests of the API, running and ended. */
export interface Requests {
  /** The requests that run, oldest first. */
  readonly running: () => readonly Exchange[];
  readonly recent: RecentRequests;
  /** Asks a node for its requests. Rejects if it cannot be asked. */
  readonly ofNode: (node: NodeId) => Promise<readonly NodeRequest[]>;
}

/** The nodes as operators see and steer them. */
export interface Fleet {
  readonly details: () => readonly NodeDetail[];
  readonly wishes: Pick<NodeWishes, "of" | "setMaintenance" | "prewarm">;
  readonly place: (request: { readonly model: ModelId }) => Placement;
  /** Monotonic ms, by which reports are dated. */
  readonly nowMs: () => number;
}

export interface ConsoleParts {
  /** Base URL of links. */
  readonly url: string;
  readonly sessions: ConsoleSessions;
  readonly pipeline: PipelineParts;
}

/** Parts of the router that only the console shows. */
export interface PipelineParts {
  /** Usage records that wait for the database here. */
  readonly waitingForCommit: () => number;
  /** When a job last ended without an error, in ms since 1970. Undefined: not yet. */
  readonly jobRanAtMs: (job: string) => number | undefined;
  readonly evaluateMs: number;
  /** How long ago the changes of keys were read. */
  readonly keysAgeMs: () => number;
}
