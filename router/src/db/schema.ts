/** The tables of `router/migrations` as Kysely sees them. Names are in camel case here, in snake case there. */
import type { ColumnType } from "kysely";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import type { Millicredits } from "@weiche/shared/credits.ts";
import type { PackageName } from "../accounts/packages.ts";

type Instant = ColumnType<Temporal.Instant, string, string>;
type InstantOrNull = ColumnType<Temporal.Instant | null, string | null | undefined, string | null>;
type Defaulted<T> = ColumnType<T, T | undefined, T>;

export interface Schema {
  readonly accounts: {
    id: AccountId;
    name: string;
    exhaustedUntil: InstantOrNull;
    nextChargeAt: InstantOrNull;
    packageChangedAt: InstantOrNull;
    createdAt: Instant;
  };
  readonly users: {
    id: UserId;
    accountId: AccountId;
    email: string;
    role: Role;
    blocked: Defaulted<boolean>;
    allowedModels: string[] | null;
    creditLimit: Millicredits | null;
    limitReachedUntil: InstantOrNull;
    createdAt: Instant;
  };
  readonly invitations: {
    tokenHash: string;
    userId: UserId;
    createdAt: Instant;
    expiresAt: Instant;
    usedAt: InstantOrNull;
  };
  readonly apiKeys: {
    id: KeyId;
    accountId: AccountId;
    userId: UserId;
    hash: string;
    lastFour: string;
    name: string;
    allowedModels: string[] | null;
    creditLimit: Millicredits | null;
    limitReachedUntil: InstantOrNull;
    expiresAt: InstantOrNull;
    revokedAt: InstantOrNull;
    regeneratedAs: KeyId | null;
    createdAt: Instant;
  };
  readonly subscriptions: {
    accountId: AccountId;
    package: PackageName;
    state: "trial" | "active";
    startedAt: Instant;
    endedAt: InstantOrNull;
    rhythmFrom: InstantOrNull;
    quoteId: ColumnType<string | null, string | null | undefined, never>;
  };
  readonly invoiceLines: {
    accountId: AccountId;
    reason: "package" | "upgrade";
    package: PackageName;
    periodStart: Instant;
    periodEnd: Instant;
    days: number;
    periodDays: number;
    amountCents: number;
    createdAt: Instant;
  };
  readonly notices: {
    accountId: AccountId;
    periodStart: Instant;
    kind: NoticeKind;
    createdAt: Instant;
  };
  readonly auditLog: {
    accountId: AccountId;
    number: bigint;
    at: Instant;
    actor: string;
    source: string;
    action: string;
    object: string;
    result: string;
    details: string;
    hash: string;
  };
  readonly auditHeads: {
    accountId: AccountId;
    number: bigint;
    hash: string;
  };
  readonly usageTotals: {
    accountId: AccountId;
    periodStart: Instant;
    scope: "account" | "user" | "key" | "model";
    subject: string;
    requests: bigint;
    promptTokens: bigint;
    completionTokens: bigint;
    credits: bigint;
  };
  readonly usageDays: {
    accountId: AccountId;
    day: string;
    periodStart: Instant;
    userId: UserId;
    keyId: KeyId;
    model: string;
    requests: bigint;
    promptTokens: bigint;
    completionTokens: bigint;
    credits: bigint;
  };
}

export type Role = "owner" | "admin" | "member";

export type NoticeKind = "quota-75" | "quota-90" | "quota-100";
