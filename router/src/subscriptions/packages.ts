/** The packages of the service. Prices are net, in cents per month; limits hold for the whole account. */
import { millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { PackageName } from "../db/schema.ts";

export interface Package {
  readonly name: PackageName;
  readonly priceCents: number;
  readonly creditsPerMonth: bigint;
  readonly requestsPerMinute: number;
  readonly parallelRequests: number;
  readonly emailSupport: boolean;
}

export const packages: Readonly<Record<PackageName, Package>> = {
  Starter: {
    name: "Starter",
    priceCents: 700,
    creditsPerMonth: 5_000_000n,
    requestsPerMinute: 30,
    parallelRequests: 5,
    emailSupport: false,
  },
  Pro: {
    name: "Pro",
    priceCents: 3_500,
    creditsPerMonth: 80_000_000n,
    requestsPerMinute: 60,
    parallelRequests: 10,
    emailSupport: true,
  },
  Business: {
    name: "Business",
    priceCents: 12_900,
    creditsPerMonth: 320_000_000n,
    requestsPerMinute: 150,
    parallelRequests: 20,
    emailSupport: true,
  },
  "Business Plus": {
    name: "Business Plus",
    priceCents: 24_900,
    creditsPerMonth: 650_000_000n,
    requestsPerMinute: 150,
    parallelRequests: 20,
    emailSupport: true,
  },
};

export function quotaOf(name: PackageName): Millicredits {
  return millicredits(packages[name].creditsPerMonth * 1000n);
}

/** Finds a package by its name in any case. */
export function findPackage(name: string): Package | undefined {
  return Object.values(packages).find((p) => p.name.toLowerCase() === name.trim().toLowerCase());
}
