/** The parts of the router that the contract's handlers use. */
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
import type { OwnCapacity } from "../../simulate/own/own-capacity.ts";
import type { Evaluator } from "../../usage/evaluator.ts";
import type { ConsoleSessions } from "../console/console-sessions.ts";
import type { ExportPlaces } from "./export-places.ts";

export interface HandlerDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly accounts: Accounts;
  readonly identity: Identity;
  readonly limiter: Limiter;
  readonly evaluator: Evaluator;
  readonly exports: ExportPlaces;
  /** For how many days single requests are listed. */
  readonly requestDays: number;
  /** Base URL of the public API, without `/v1`. */
  readonly apiUrl: string;
  /** The limits of the public API. */
  readonly apiLimits: IpLimitSettings & { readonly requestMsMax: number };
  readonly catalogue: () => Catalogue;
  /** Ids of the catalogue's models. */
  readonly models: () => Iterable<string>;
  /** The catalogue's changelog for customers, newest first. */
  readonly changes: () => readonly ServiceChange[];
  /** Throws a `StartError` with the file's mistakes. The current catalogue stays then. */
  readonly reloadCatalogue: () => Promise<void>;
  readonly nodes: () => readonly NodeView[];
  /** How long recent requests waited for this model to become active. Undefined if none waited. */
  readonly usualWaitMs: (model: ModelId) => number | undefined;
  readonly fleet: Fleet;
  readonly requests: Requests;
  readonly overview: Overview;
  readonly logLevel: Pick<LogLevelSwitch, "state" | "set">;
  readonly chat: ApiServer["chat"];
  /** Undefined if the console is off. */
  readonly console?: ConsoleParts | undefined;
}

/** The router's state for operators. */
export interface Overview {
  /** Wall-clock time in ms. */
  readonly startedAtMs: number;
  /** Addresses by the listeners' names. */
  readonly listeners: Readonly<Record<string, string>>;
  readonly databaseServer: "embedded" | "configured";
  readonly routers: RoutersOverview;
  /** Undefined if each router counts the limits of accounts by itself. */
  readonly limitStore?: LimitStoreView | undefined;
  readonly certificates: CertificatesInUse<string>;
}

/** The routers that share the database, as of the last heartbeat. */
interface RoutersOverview {
  readonly all: () => readonly KnownRouter[];
  /** The number of other routers. */
  readonly others: () => number;
  /** This router's id. */
  readonly own: string;
}

/** Running and ended requests of the API. */
interface Requests {
  /** Running requests, oldest first. */
  readonly running: () => readonly Exchange[];
  readonly recent: RecentRequests;
  /** Asks a node for its requests. Rejects if the node does not answer. */
  readonly ofNode: (node: NodeId) => Promise<readonly NodeRequest[]>;
}

/** The nodes, for operators. */
export interface Fleet {
  readonly details: () => readonly NodeDetail[];
  readonly wishes: Pick<NodeWishes, "of" | "setMaintenance" | "acknowledge" | "prewarm">;
  readonly place: (request: { readonly model: ModelId }) => Placement;
  /** The time in monotonic ms, as in the dates of reports. */
  readonly nowMs: () => number;
}

export interface ConsoleParts {
  /** Base URL of links to the console. */
  readonly url: string;
  readonly sessions: ConsoleSessions;
  readonly pipeline: PipelineParts;
  readonly capacity: OwnCapacity;
}

/** Parts of the router that only the console shows. */
export interface PipelineParts {
  /** Number of usage records in this router that wait for the database. */
  readonly waitingForCommit: () => number;
  /** When a job last ended without an error, in ms since 1970. Undefined if it has not. */
  readonly jobRanAtMs: (job: "credits") => number | undefined;
  readonly evaluateMs: number;
  /** Time since the key cache last read changes. */
  readonly keysAgeMs: () => number;
}
