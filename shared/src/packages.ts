/**
 * The packages in the catalogue's file, which accounts may order. Each has one or more versions of its terms, each
 * valid from an instant on.
 */
import { Type, type Static } from "typebox";
import { Value } from "typebox/value";
import type { Finding } from "./files/config-file.ts";

/** A package's price, credits and limits. All keys of an account share the limits. */
export interface PackageTerms {
  /** Net price per month. */
  readonly priceCents: number;
  readonly creditsPerMonth: bigint;
  readonly requestsPerMinute: number;
  readonly parallelRequests: number;
  readonly emailSupport: boolean;
  /** Length of a free trial in German calendar days. Applies only to the package that offers the trial. */
  readonly trialDays: number;
}

export interface PackageVersion extends PackageTerms {
  readonly validFromMs: number;
}

export interface PackageEntry {
  readonly name: string;
  /** Whether this package offers the free trial. */
  readonly trial: boolean;
  /** Ids of the only accounts that may see and order the package. If undefined, every account may. */
  readonly accounts?: readonly string[];
  /** Oldest first. */
  readonly versions: readonly PackageVersion[];
}

const closed = { additionalProperties: false } as const;
const limits = { minimum: 1, maximum: 1_000_000 };

export const packagesSchema = Type.Array(
  Type.Object(
    {
      name: Type.String({
        pattern: "^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,58}[A-Za-z0-9+]$",
        description: "the package's name. A package that accounts have, or have ordered, must stay in the file",
      }),
      trial: Type.Boolean({ default: false, description: "whether this package offers the free trial" }),
      accounts: Type.Optional(
        Type.Array(Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" }), {
          minItems: 1,
          description: "ids of the only accounts that may see and order the package",
          absent: "every account",
        }),
      ),
      terms: Type.Array(
        Type.Object(
          {
            validFrom: Type.String({
              description:
                "when these terms start to apply to new orders. Accounts that have the package get them with their first billing period that begins then or later",
            }),
            price: Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000, description: "net price per month, in EUR" }),
            credits: Type.Integer({
              minimum: 1,
              maximum: 1_000_000_000_000,
              description: "credits per billing period",
            }),
            requestsPerMinute: Type.Integer({ ...limits, description: "maximum requests per minute of an account" }),
            parallel: Type.Integer({ ...limits, description: "maximum parallel requests of an account" }),
            support: Type.Boolean({ description: "whether the portal shows support by e-mail" }),
            trialDays: Type.Integer({
              minimum: 1,
              maximum: 366,
              default: 30,
              description:
                "length of a free trial that begins under these terms. It ends at German midnight, this many days after its first day. A running trial keeps its end",
            }),
          },
          closed,
        ),
        { minItems: 1 },
      ),
    },
    closed,
  ),
  {
    minItems: 1,
    description:
      "the packages that accounts may order. Terms in effect cannot change: add terms with a later `validFrom`",
    absent: "the built-in packages Starter, Pro, Business and Business Plus",
  },
);

type Raw = Static<typeof packagesSchema>;

/** Finds mistakes that the schema does not find, with their paths below `packages`. */
export function* judgePackages(raw: Raw): Generator<Finding> {
  const names = new Set<string>();
  let hasTrial = false;
  for (const [index, { name, trial, accounts, terms }] of raw.entries()) {
    if (names.has(name.toLowerCase())) yield [[index, "name"], `the package ${name} is listed twice`];
    names.add(name.toLowerCase());
    if (trial && hasTrial) yield [[index, "trial"], "only one package may have `trial: true`"];
    if (trial && accounts)
      yield [[index, "accounts"], "a package with `trial: true` must be open to every account: remove `accounts`"];
    hasTrial ||= trial;
    const instants = new Set<number>();
    for (const [at, { validFrom, price }] of terms.entries()) {
      const ms = Date.parse(validFrom);
      const path = [index, "terms", at];
      if (Number.isNaN(ms))
        yield [[...path, "validFrom"], `"${validFrom}" is not an instant such as 2026-01-01T00:00:00+01:00`];
      else if (instants.has(ms)) yield [[...path, "validFrom"], "other terms are valid from the same instant"];
      instants.add(ms);
      if (!isWholeCents(price)) yield [[...path, "price"], `${price} EUR is not a whole number of cents`];
    }
  }
}

/** Reads a list in which `judgePackages` finds no mistake. */
export function readPackageEntries(raw: Raw): readonly PackageEntry[] {
  return raw.map(({ name, trial, accounts, terms }) => ({
    name,
    trial,
    ...(accounts && { accounts }),
    versions: terms
      .map(({ validFrom, price, credits, requestsPerMinute, parallel, support, trialDays }) => ({
        validFromMs: Date.parse(validFrom),
        priceCents: Math.round(price * 100),
        creditsPerMonth: BigInt(credits),
        requestsPerMinute,
        parallelRequests: parallel,
        emailSupport: support,
        trialDays,
      }))
      .toSorted((a, b) => a.validFromMs - b.validFromMs),
  }));
}

function isWholeCents(price: number): boolean {
  return Math.abs(price * 100 - Math.round(price * 100)) < 1e-6;
}

function service(name: string, price: number, millions: number, perMinute: number, parallel: number) {
  const validFrom = "2026-01-01T00:00:00+01:00";
  const limits = { requestsPerMinute: perMinute, parallel, support: name !== "Starter" };
  const terms = [{ validFrom, price, credits: millions * 1_000_000, ...limits }];
  return { name, terms, ...(name === "Starter" && { trial: true }) };
}

/** The packages if the catalogue's file has none. */
export const servicePackages: readonly PackageEntry[] = readPackageEntries(
  Value.Default(packagesSchema, [
    service("Starter", 7, 5, 30, 5),
    service("Pro", 35, 80, 60, 10),
    service("Business", 129, 320, 150, 20),
    service("Business Plus", 249, 650, 150, 20),
  ]) as Raw,
);
