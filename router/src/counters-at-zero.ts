/** Sets counters whose labels are fixed words to 0, so that `rate()` and `increase()` see the first event. */
import { apiErrors } from "@weiche/shared/errors.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import { beginAtZero } from "@weiche/shared/program/metric-registry.ts";
import type { Counter } from "prom-client";
import type { Endpoint, Outcome } from "./api/exchange.ts";
import { pageRefusals } from "./edge/html-pages.ts";
import { databaseUses } from "./job-names.ts";
import type { LetterKind } from "./mail/letters.ts";
import type { DataConnectionsEvents } from "./nodes/data-connections.ts";
import type { RefusalReason as LinkRefusal } from "./nodes/node-link-session.ts";
import type { LoginOutcome } from "./sign-in/identity-context.ts";
import { refusalWords } from "./usage/refusal-codes.ts";
import type { SetAsideReason } from "./usage/usage-check.ts";

interface Counters {
  readonly answers: Counter<"endpoint" | "status" | "code">;
  readonly refusals: Counter<"reason">;
  readonly nodesRefused: Counter<"reason">;
  readonly usageRecords: Counter<"result">;
  readonly usageSetAside: Counter<"reason">;
  readonly logins: Counter<"outcome">;
  readonly mails: Counter<"kind" | "result">;
  readonly databaseErrors: Counter<"what">;
}

/** All members of a union as keys, so that the compiler finds a missing one. */
type Words<Word extends string> = Readonly<Record<Word, true>>;

const outcomes: Words<Outcome> = {
  ...{ answered: true, refused: true, "client-gone": true, broken: true, timeout: true, stalled: true },
};
const nodeRefusals: Words<LinkRefusal | Parameters<DataConnectionsEvents["dataConnectionRefused"]>[0]> = {
  ...{ tls: true, invalid: true, name: true, "older-boot": true, late: true, stopping: true },
  ...{ protocol: true, identity: true, "too-many": true, "too-often": true, crowd: true },
};
const setAside: Words<SetAsideReason> = {
  ...{ unreadable: true, malformed: true, "too-expensive": true, "too-old": true, "from-the-future": true },
  ...{ "no-grant": true, "wrong-grant": true, "too-many-tokens": true, database: true },
};
const loginOutcomes: Words<LoginOutcome> = {
  ...{ "signed-in": true, wrong: true, "code-required": true, "code-wrong": true },
  ...{ blocked: true, "account-blocked": true, throttled: true, overloaded: true },
};
const letters: Words<LetterKind> = {
  invitation: true,
  reset: true,
  notice: true,
  "sign-in": true,
  registration: true,
  welcome: true,
};
const apiEndpoints: readonly Endpoint[] = ["chat", "completions", "embeddings", "models"];

export function beginCountersAtZero(metrics: Counters): void {
  beginAtZero(metrics.refusals, { reason: refusalWords });
  beginAtZero(metrics.answers, { endpoint: apiEndpoints, status: ["200"], code: ["none"] });
  for (const { status, code } of Object.values(apiErrors))
    beginAtZero(metrics.answers, { endpoint: apiEndpoints, status: [String(status)], code: [code] });
  for (const { status } of Object.values(pageRefusals))
    beginAtZero(metrics.answers, { endpoint: [...apiEndpoints, "other"], status: [String(status)], code: ["none"] });
  beginAtZero(metrics.nodesRefused, { reason: Object.keys(nodeRefusals) });
  beginAtZero(metrics.usageRecords, { result: ["committed", "repeated", "refused", "voided", "void-lost"] });
  beginAtZero(metrics.usageSetAside, { reason: Object.keys(setAside) });
  beginAtZero(metrics.logins, { outcome: Object.keys(loginOutcomes) });
  beginAtZero(metrics.mails, { kind: Object.keys(letters), result: ["sent", "failed"] });
  beginAtZero(metrics.databaseErrors, { what: databaseUses });
}

interface ModelCounters {
  readonly requests: Counter<"endpoint" | "model" | "outcome">;
  readonly credits: Counter<"model">;
  readonly creditsVoided: Counter<"model">;
}

/** Sets the counters of a catalogue's models to 0. Call it each time the catalogue changes. */
export function beginModelsAtZero(
  { requests, credits, creditsVoided }: ModelCounters,
  catalogue: Iterable<{ readonly id: ModelId; readonly category: string }>,
): void {
  const outcome = Object.keys(outcomes);
  beginAtZero(requests, { endpoint: [...apiEndpoints, "other"], model: ["none"], outcome });
  for (const { id, category } of catalogue) {
    const endpoint: readonly Endpoint[] = category === "embeddings" ? ["embeddings"] : ["chat", "completions"];
    beginAtZero(requests, { endpoint, model: [id], outcome });
    for (const counter of [credits, creditsVoided]) beginAtZero(counter, { model: [id] });
  }
}
