/** The tables of `router/migrations` as types for Kysely. Names are in camel case here and in snake case in SQL. */
import type { ColumnType } from "kysely";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import type { ModelStatus } from "@weiche/shared/catalogue.ts";
import type { Millicredits } from "@weiche/shared/credits.ts";
import type { Seller } from "../config/invoice-settings.ts";

export type Language = "de" | "en";
export type Theme = "light" | "dark";
/** The name of a row of `packages`. */
export type PackageName = string;

export type NoticeKind =
  | "quota-75"
  | "quota-90"
  | "quota-100"
  | "key-limit"
  | "user-limit"
  | "key-expiring"
  | "trial-ending"
  | "package-ending"
  | "model-status"
  | "model-factor"
  | "model-change"
  | "package-terms";

type Instant = ColumnType<Temporal.Instant, string, string>;
type InstantOrNull = ColumnType<Temporal.Instant | null, string | null | undefined, string | null>;
type Defaulted<T> = ColumnType<T, T | undefined, T>;

/** Sent as JSON text. */
type JsonOf<T> = ColumnType<T, string, never>;

/** The receiver of an account's invoices. */
export interface BillingDetails {
  readonly name: string;
  readonly street: string;
  readonly postalCode: string;
  readonly city: string;
  /** Two letters, such as DE. */
  readonly country: string;
  readonly vatId: string | null;
  readonly email: string | null;
}

export interface Schema {
  readonly accounts: {
    id: AccountId;
    name: string;
    exhaustedUntil: InstantOrNull;
    nextChargeAt: InstantOrNull;
    packageChangedAt: InstantOrNull;
    blockedAt: InstantOrNull;
    deletedAt: InstantOrNull;
    createdAt: Instant;
  };
  readonly users: {
    id: UserId;
    accountId: AccountId;
    email: string;
    /** What the person calls themselves. */
    name: string | null;
    role: Role;
    blocked: Defaulted<boolean>;
    allowedModels: string[] | null;
    creditLimit: Millicredits | null;
    limitReachedUntil: InstantOrNull;
    language: Language | null;
    theme: Theme | null;
    checklistHidden: Defaulted<boolean>;
    mailsOff: Defaulted<string[]>;
    deletedAt: InstantOrNull;
    createdAt: Instant;
  };
  readonly credentials: {
    userId: UserId;
    password: string;
    passwordSetAt: Instant;
    lastLoginAt: InstantOrNull;
    failedLogins: Defaulted<number>;
    totpSecret: string | null;
    totpSince: InstantOrNull;
    totpStep: bigint | null;
  };
  readonly recoveryCodes: {
    userId: UserId;
    codeHash: string;
  };
  readonly sessions: {
    id: string;
    tokenHash: string;
    userId: UserId;
    role: Role;
    source: string;
    agent: string;
    createdAt: Instant;
    seenAt: Instant;
    expiresAt: Instant;
  };
  readonly invitations: {
    tokenHash: string;
    userId: UserId;
    createdAt: Instant;
    expiresAt: Instant;
    usedAt: InstantOrNull;
    withdrawnAt: InstantOrNull;
    createdBy: UserId | null;
  };
  readonly knownPlaces: {
    userId: UserId;
    place: string;
    seenAt: Instant;
  };
  readonly passwordResets: {
    tokenHash: string;
    userId: UserId;
    createdAt: Instant;
    expiresAt: Instant;
    createdBy: UserId | null;
  };
  readonly attempts: {
    subject: string;
    level: number;
    at: Instant;
    knownUntil: InstantOrNull;
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
  readonly retiredKeys: {
    id: KeyId;
    accountId: AccountId;
    userId: UserId;
    name: string;
    lastFour: string;
    retiredAt: Instant;
  };
  readonly keyUses: {
    keyId: KeyId;
    lastUsedAt: Instant;
  };
  readonly subscriptions: {
    accountId: AccountId;
    package: PackageName;
    state: "trial" | "active";
    startedAt: Instant;
    endedAt: InstantOrNull;
    rhythmFrom: InstantOrNull;
  };
  readonly packages: {
    name: PackageName;
    position: number;
    isListed: boolean;
    hasTrial: boolean;
    onlyFor: string[] | null;
  };
  readonly packageTerms: {
    package: PackageName;
    validFrom: Instant;
    effectiveFrom: Instant;
    priceCents: number;
    credits: bigint;
    requestsPerMinute: number;
    parallelRequests: number;
    emailSupport: boolean;
    trialDays: number;
  };
  readonly orderedQuotes: {
    accountId: AccountId;
    quoteId: string;
    wish: string;
    orderedAt: Instant;
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
    /** null until the line's invoice is issued. */
    invoiceNumber: ColumnType<string | null, string | null | undefined, string>;
  };
  readonly invoices: {
    number: string;
    year: number;
    position: number;
    accountId: AccountId;
    periodStart: Instant;
    periodEnd: Instant;
    issuedAt: Instant;
    seller: JsonOf<Seller>;
    buyer: JsonOf<BillingDetails>;
    netCents: number;
    vatHundredths: number;
    vatCents: number;
    note: string | null;
  };
  /** One row: the newest invoice. */
  readonly invoiceNumbers: { year: number; position: number; issuedAt: Instant };
  readonly registrations: {
    email: string;
    tokenHash: string;
    accountName: string;
    language: Language | null;
    terms: string | null;
    createdAt: Instant;
    expiresAt: Instant;
  };
  readonly billingDetails: BillingDetails & { accountId: AccountId };
  readonly notices: {
    id: ColumnType<string, never, never>;
    accountId: AccountId;
    kind: NoticeKind;
    event: string;
    userId: UserId | null;
    keyId: KeyId | null;
    facts: ColumnType<Readonly<Record<string, unknown>>, string, never>;
    createdAt: Instant;
  };
  readonly announcedModels: {
    model: string;
    status: ModelStatus | null;
    factors: ColumnType<readonly (readonly [validFromMs: number, millicredits: string])[], string, string>;
    version: bigint;
  };
  readonly announcedChanges: {
    told: ColumnType<readonly (readonly [at: string, models: string, hash: string])[], string, string>;
  };
  readonly auditCheckpoints: {
    accountId: AccountId;
    number: bigint;
    hash: string;
    removedAt: Instant;
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
    credits: bigint;
  };
}

export type Role = "owner" | "admin" | "member";
