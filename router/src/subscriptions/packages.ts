/** The published packages (see `publish-packages.ts`), with every version of their terms. */
import type { Kysely, Selectable } from "kysely";
import { formatCredits, millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { servicePackages, type PackageEntry, type PackageTerms } from "@weiche/shared/packages.ts";
import type { PackageName, Schema } from "../db/schema.ts";

export interface EffectiveTerms extends PackageTerms {
  readonly effectiveFromMs: number;
}

export interface Package {
  readonly name: PackageName;
  /** False if the catalogue file no longer names the package. */
  readonly isListed: boolean;
  readonly hasTrial: boolean;
  /** The only accounts that see the package; null if every account sees it. */
  readonly onlyFor: readonly string[] | null;
  /** At least one version, in the order in which they become effective. */
  readonly versions: readonly EffectiveTerms[];
}

/** All packages by name, in the order of the catalogue file. */
export type PackageBook = ReadonlyMap<PackageName, Package>;

export async function readPackages(kysely: Kysely<Schema>): Promise<PackageBook> {
  const terms = await kysely.selectFrom("packageTerms").selectAll().orderBy("effectiveFrom").execute();
  const versionsOf = Map.groupBy(terms, (row) => row.package);
  const rows = await kysely.selectFrom("packages").selectAll().orderBy("position").orderBy("name").execute();
  const packages = rows.map(({ name, isListed, hasTrial, onlyFor }) => {
    const versions = versionsOf.get(name)!.map(effectiveTerms);
    return [name, { name, isListed, hasTrial, onlyFor, versions }] as const;
  });
  return new Map(packages);
}

/** Returns the packages of a catalogue file as if they were published before any booking. */
function bookOf(entries: readonly PackageEntry[]): PackageBook {
  return new Map(
    entries.map(({ name, trial, accounts, versions }) => {
      const effective = versions.map(({ validFromMs, ...terms }) => ({ ...terms, effectiveFromMs: validFromMs }));
      return [name, { name, isListed: true, hasTrial: trial, onlyFor: accounts ?? null, versions: effective }];
    }),
  );
}

export const serviceBook = bookOf(servicePackages);

/** Returns the version valid at `atMs`, or the first version if none is valid yet. */
export function versionAt<V extends { readonly effectiveFromMs: number }>(versions: readonly V[], atMs: number): V {
  return versions.findLast(({ effectiveFromMs }) => effectiveFromMs <= atMs) ?? versions[0]!;
}

/** Returns the terms of a booking of the package at `atMs`. */
export function termsAt(book: PackageBook, name: PackageName, atMs: number): EffectiveTerms {
  return versionAt(book.get(name)!.versions, atMs);
}

export function quotaOf({ creditsPerMonth }: PackageTerms): Millicredits {
  return millicredits(creditsPerMonth * 1000n);
}

/** Lists the packages that the account may order. */
export function offeredTo(book: PackageBook, accountId: AccountId): readonly Package[] {
  return [...book.values()].filter(({ isListed, onlyFor }) => isListed && (onlyFor?.includes(accountId) ?? true));
}

/** Reads a stored version of a package's terms. */
export function effectiveTerms(row: Selectable<Schema["packageTerms"]>): EffectiveTerms {
  const { effectiveFrom, credits, priceCents, requestsPerMinute, parallelRequests, emailSupport, trialDays } = row;
  const terms = { priceCents, creditsPerMonth: credits, requestsPerMinute, parallelRequests, emailSupport, trialDays };
  return { effectiveFromMs: effectiveFrom.epochMilliseconds, ...terms };
}

/** Returns terms as the portal and notices show them: price, credits and limits of a billing period. */
export function viewTerms(terms: PackageTerms) {
  const { priceCents, requestsPerMinute, parallelRequests, emailSupport } = terms;
  return {
    priceCents,
    creditsPerMonth: formatCredits(quotaOf(terms)),
    requestsPerMinute,
    parallelRequests,
    emailSupport,
  };
}
