/**
 * The packages of the catalogue file that accounts may book. Each has one or more versions of its terms, each valid
 * from an instant on.
 */
import { Type, type Static } from "typebox";
import type { Finding } from "./files/config-file.ts";

/** What a package costs and gives. The limits are shared by all keys of the account. */
export interface PackageTerms {
  /** Net, per month. */
  readonly priceCents: number;
  readonly creditsPerMonth: bigint;
  readonly requestsPerMinute: number;
  readonly parallelRequests: number;
  readonly emailSupport: boolean;
  /** Length of a free trial that begins under these terms, in German days; used where the package has the trial. */
  readonly trialDays: number;
}

export interface PackageVersion extends PackageTerms {
  readonly validFromMs: number;
}

export interface PackageEntry {
  readonly name: string;
  /** The package of the free trial. */
  readonly trial: boolean;
  /** The only accounts that see it and may order it, by their ids. Absent: every account. */
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
        description: "its name, by which accounts order it; one that accounts have, or will have, must stay",
      }),
      trial: Type.Optional(
        Type.Boolean({ description: "whether it is the package of the free trial", absent: "it is not" }),
      ),
      accounts: Type.Optional(
        Type.Array(Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" }), {
          minItems: 1,
          description: "ids of the accounts that see it and may order it",
          absent: "every account",
        }),
      ),
      terms: Type.Array(
        Type.Object(
          {
            validFrom: Type.String({
              description:
                "instant from which these terms hold for whoever books the package; who has it gets them with the first billing period that begins then or later",
            }),
            price: Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000, description: "net, per month, in EUR" }),
            credits: Type.Integer({
              minimum: 1,
              maximum: 1_000_000_000_000,
              description: "credits per billing period",
            }),
            requestsPerMinute: Type.Integer({ ...limits, description: "requests per minute of the account" }),
            parallel: Type.Integer({ ...limits, description: "requests at once of the account" }),
            support: Type.Boolean({ description: "whether there is support by e-mail; it is shown" }),
            trialDays: Type.Optional(
              Type.Integer({
                minimum: 1,
                maximum: 366,
                default: 30,
                description:
                  "how long a free trial lasts that begins while these terms hold: it ends at German midnight, this many days after the day on which it begins. A trial that runs keeps its end",
              }),
            ),
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
    description: "what accounts may order; terms that hold cannot change any more: add terms with a later `validFrom`",
    absent: "Starter, Pro, Business and Business Plus, as the service offers them",
  },
);

type Raw = Static<typeof packagesSchema>;

/** Mistakes that the schema does not find, with their paths below `packages`. */
export function* judgePackages(raw: Raw): Generator<Finding> {
  const names = new Set<string>();
  let hasTrial = false;
  for (const [index, { name, trial, accounts, terms }] of raw.entries()) {
    if (names.has(name.toLowerCase())) yield [[index, "name"], `the package ${name} is listed twice`];
    names.add(name.toLowerCase());
    if (trial && hasTrial) yield [[index, "trial"], "only one package is that of the trial"];
    if (trial && accounts) yield [[index, "accounts"], "the package of the trial is for every account"];
    hasTrial ||= trial ?? false;
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
  return raw.map(({ name, trial = false, accounts, terms }) => ({
    name,
    trial,
    ...(accounts && { accounts }),
    versions: terms
      .map(({ validFrom, price, credits, requestsPerMinute, parallel, support, trialDays = 30 }) => ({
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

function service(name: string, price: number, millions: number, perMinute: number, parallel: number): Raw[number] {
  const validFrom = "2026-01-01T00:00:00+01:00";
  const limits = { requestsPerMinute: perMinute, parallel, support: name !== "Starter" };
  const terms = [{ validFrom, price, credits: millions * 1_000_000, ...limits }];
  return { name, terms, ...(name === "Starter" && { trial: true }) };
}

/** The packages where the catalogue file names none. */
export const servicePackages: readonly PackageEntry[] = readPackageEntries([
  service("Starter", 7, 5, 30, 5),
  service("Pro", 35, 80, 60, 10),
  service("Business", 129, 320, 150, 20),
  service("Business Plus", 249, 650, 150, 20),
]);
