import { beforeEach, describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { servicePackages, type PackageEntry, type PackageVersion } from "@weiche/shared/packages.ts";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import { listNotices } from "../../src/accounts/notices.ts";
import type { Database } from "../../src/db/database.ts";
import { createKeyCache, type OpenKeyCache } from "../../src/callers/key-cache.ts";
import { RequestError } from "../../src/rights/request-error.ts";
import { packageUse } from "../../src/subscriptions/package-use.ts";
import { publishPackages } from "../../src/subscriptions/publish-packages.ts";
import { readPackages } from "../../src/subscriptions/packages.ts";
import { testDatabases, until } from "../db/database-fixture.ts";

const berlin = (day: string) => Date.parse(`${day}T00:00:00+02:00`);
let database: Database;
let clock: VirtualClock;
let accounts: Accounts;
let accountId: AccountId;
let userId: UserId;
let count = 0;

const server = await forThisFile(testDatabases());
beforeEach(async () => {
  database = await server.newDatabase();
  clock = new VirtualClock(Date.parse("2026-06-10T12:00:00+02:00"));
  accounts = createAccounts({ database, clock, portalUrl: "https://portal.example" });
  await publish();
  ({ accountId, userId } = await newAccount("Pro"));
});

async function newAccount(name?: string) {
  const wish = { name: "ACME", ownerEmail: `owner${++count}@example.com`, ...(name && { package: name }) };
  const { id, ownerUserId } = await accounts.create(wish);
  return { accountId: id, userId: asId<UserId>(ownerUserId) };
}

function publish(entries: readonly PackageEntry[] = servicePackages): Promise<void> {
  return publishPackages(database, entries, clock.now());
}

/** Returns the service's packages with further terms of one package. */
function withTerms(name: string, validFromMs: number, change: Partial<PackageVersion>): readonly PackageEntry[] {
  return servicePackages.map((entry) =>
    entry.name === name
      ? { ...entry, versions: [...entry.versions, { ...entry.versions[0]!, ...change, validFromMs }] }
      : entry,
  );
}

const goTo = (atMs: number) => clock.advance(atMs - clock.now());
const use = () => packageUse(database, accountId, clock.now());
const preview = (action: "upgrade" | "downgrade" | "cancel" | "order", name?: string, of = accountId) =>
  accounts.subscriptions.preview(of, { action, ...(name && { package: name }) });

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  return error instanceof RequestError ? `${error.kind}: ${error.message}` : (error as Error).message;
}

async function charged() {
  await accounts.subscriptions.chargeWhatIsDue();
  const lines = await accounts.subscriptions.invoice(accountId);
  return lines.map(({ reason, package: name, amountCents }) => `${reason} ${name} ${amountCents}`);
}

const notices = async (of = accountId) =>
  (await listNotices(database, { accountId: of, seesAll: true }, { limit: 50 }, clock.now())).items
    .filter(({ kind }) => kind === "package-terms")
    .map(({ facts }) => facts);

describe("new terms of a package", () => {
  const change = { priceCents: 4_000, creditsPerMonth: 100_000_000n, requestsPerMinute: 90, parallelRequests: 12 };
  const validFromMs = berlin("2026-06-20");

  test("are booked from the next period on; the running period keeps its price, credits and limits [A6]", async () => {
    await publish(withTerms("Pro", validFromMs, change));
    const before = {
      quota: 80_000_000_000n,
      booked: { priceCents: 3_500, requestsPerMinute: 60, parallelRequests: 10 },
    };
    expect(await use()).toMatchObject(before);
    goTo(berlin("2026-07-10") - 1);
    expect(await use()).toMatchObject(before);
    expect(await charged()).toEqual(["package Pro 3500"]);
    goTo(berlin("2026-07-10"));
    expect(await use()).toMatchObject({ quota: 100_000_000_000n, booked: { priceCents: 4_000, parallelRequests: 12 } });
    expect(await charged()).toEqual(["package Pro 3500", "package Pro 4000"]);
  });

  test("apply at once to an account that books the package after they are valid", async () => {
    await publish(withTerms("Pro", validFromMs, change));
    goTo(validFromMs - 1);
    const before = await newAccount("Pro");
    goTo(validFromMs);
    const after = await newAccount("Pro");
    const of = async (id: AccountId) => (await packageUse(database, id, clock.now())).booked!.priceCents;
    expect([await of(before.accountId), await of(after.accountId)]).toEqual([3_500, 4_000]);
  });

  test("apply to an upgrade, which costs the difference to the booked terms", async () => {
    await publish(withTerms("Business", validFromMs, { priceCents: 13_500 }));
    goTo(berlin("2026-06-25"));
    const quote = await preview("upgrade", "Business");
    // The difference is 100.00 EUR, and 15 of 30 days are left.
    expect(quote).toMatchObject({ dueCents: 5_000, thenCents: 13_500 });
    await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Business" }, quote.quoteId);
    expect(await charged()).toEqual(["package Pro 3500", "upgrade Business 5000"]);
    goTo(berlin("2026-07-10"));
    expect(await charged()).toEqual(["package Pro 3500", "upgrade Business 5000", "package Business 13500"]);
  });

  test("that are announced appear in quotes and invalidate earlier quotes", async () => {
    const { accountId: id } = await newAccount();
    const quote = await preview("order", "Pro", id);
    expect(quote).toMatchObject({ dueCents: 3_500, thenCents: 3_500 });
    await publish(withTerms("Pro", validFromMs, { priceCents: 4_000 }));
    const order = { action: "order", package: "Pro" } as const;
    expect(await refusal(accounts.subscriptions.change(id, order, quote.quoteId))).toMatch(/^price_changed/);
    expect(await preview("order", "Pro", id)).toMatchObject({ dueCents: 3_500, thenCents: 4_000 });
    const credits = await preview("order", "Business", id);
    await publish(withTerms("Business", clock.now(), { creditsPerMonth: 1n }));
    const business = { action: "order", package: "Business" } as const;
    expect(await refusal(accounts.subscriptions.change(id, business, credits.quoteId))).toMatch(/^price_changed/);
  });

  test("never apply to a time before they were read, whatever start the file names [A6]", async () => {
    goTo(berlin("2026-07-20"));
    await publish(withTerms("Pro", validFromMs, change));
    expect(await use()).toMatchObject({ booked: { priceCents: 3_500 } });
    expect(await charged()).toEqual(["package Pro 3500", "package Pro 3500"]);
    await publish(withTerms("Pro", validFromMs, change)); // the second reading changes nothing
    expect(await notices()).toHaveLength(1);
    goTo(berlin("2026-08-10"));
    expect(await charged()).toEqual(["package Pro 3500", "package Pro 3500", "package Pro 4000"]);
  });

  test("and their withdrawal add one notice each for accounts that have the package", async () => {
    const { accountId: other } = await newAccount("Starter");
    for (let reads = 0; reads < 3; reads++) await publish(withTerms("Pro", validFromMs, { priceCents: 4_000 }));
    const old = { priceCents: 3_500, creditsPerMonth: "80000000.000", requestsPerMinute: 60 };
    expect(await notices()).toMatchObject([
      { package: "Pro", at: "2026-06-19T22:00:00Z", from: old, to: { ...old, priceCents: 4_000 } },
    ]);
    clock.advance(1_000);
    await publish();
    expect(await notices()).toMatchObject([{ package: "Pro", from: old, to: null }, { package: "Pro" }]);
    expect(await notices(other)).toEqual([]);
    goTo(berlin("2026-07-10"));
    expect(await use()).toMatchObject({ booked: { priceCents: 3_500 } });
  });

  test("are known to the key cache and apply from the next period without another lookup", async () => {
    const { key } = await accounts.keys.create(userId, { name: "ci" });
    const nothing = { keyChangesRead() {}, keyChangesUnreadable() {}, keyLookupFailed() {} };
    await using cache: OpenKeyCache = await createKeyCache(database, clock, nothing, { trustMsMax: 1e12 });
    const limits = async () => (await cache.find(key)) as { readonly requestsPerMinute: number };
    expect(await limits()).toMatchObject({ requestsPerMinute: 60, parallelRequests: 10 });
    await publish(withTerms("Pro", validFromMs, change));
    await until("the change is known", 5_000, () => cache.find(key) instanceof Promise);
    expect(await limits()).toMatchObject({ requestsPerMinute: 60, parallelRequests: 10 });
    expect(cache.find(key, berlin("2026-07-10") - 1)).toMatchObject({ requestsPerMinute: 60 });
    expect(cache.find(key, berlin("2026-07-10"))).toMatchObject({ requestsPerMinute: 90, parallelRequests: 12 });
  });
});

describe("a catalogue file is refused", () => {
  const without = (name: string) => servicePackages.filter((entry) => entry.name !== name);

  test("that omits a package which accounts have or will have, and nothing of the file is published", async () => {
    await newAccount("Pro");
    const coming = await newAccount("Business");
    await accounts.subscriptions.change(coming.accountId, { action: "downgrade", package: "Starter" });
    expect(await refusal(publish(without("Pro")))).toBe(
      "Pro is not listed, but booked by 2 accounts: list it until they have another package",
    );
    expect(await refusal(publish(without("Starter")))).toContain(
      "Starter is not listed, but booked by an account: list it until the account has another package",
    );
    expect((await readPackages(database.kysely)).get("Pro")!.isListed).toBe(true);
    await publish(without("Business Plus"));
    expect(await refusal(preview("upgrade", "Business Plus"))).toBe(
      'invalid: there is no package "Business Plus"; choose one of Starter, Pro, Business',
    );
    goTo(berlin("2026-06-11"));
    await accounts.subscriptions.change(coming.accountId, { action: "withdraw" });
    await publish(without("Starter").filter(({ name }) => name !== "Business Plus"));
  });

  test("that changes booked terms", async () => {
    const [starter, pro, ...more] = servicePackages;
    const changed = { ...pro!, versions: [{ ...pro!.versions[0]!, priceCents: 3_600 }] };
    expect(await refusal(publish([starter!, changed, ...more]))).toMatch(
      /^the terms of Pro from 2025-12-31T23:00:00Z are booked and cannot change/,
    );
    expect(await use()).toMatchObject({ booked: { priceCents: 3_500 } });
    // No account has ever booked Business Plus.
    const plus = { ...more[1]!, versions: [{ ...more[1]!.versions[0]!, priceCents: 20_000 }] };
    await publish([starter!, pro!, more[0]!, plus]);
    expect(await preview("upgrade", "Business Plus")).toMatchObject({ thenCents: 20_000 });
  });
});

test("only the named accounts see and order a package for named accounts", async () => {
  const dedicated: PackageEntry = {
    name: "Dedicated GPU",
    trial: false,
    accounts: [accountId],
    versions: [{ ...servicePackages[1]!.versions[0]!, priceCents: 90_000, parallelRequests: 200 }],
  };
  await publish([...servicePackages, dedicated]);
  const { accountId: other } = await newAccount("Pro");
  expect(await refusal(preview("upgrade", "Dedicated GPU", other))).toBe(
    'invalid: there is no package "Dedicated GPU"; choose one of Starter, Pro, Business, Business Plus',
  );
  await accounts.subscriptions.change(accountId, { action: "upgrade", package: "dedicated gpu" });
  expect(await use()).toMatchObject({ booked: { parallelRequests: 200 }, subscription: { package: "Dedicated GPU" } });
});

test("the trial belongs to the package that the file names for it; without one there is no trial", async () => {
  const { accountId: id } = await newAccount();
  const trialOf = (name?: string) => servicePackages.map((entry) => ({ ...entry, trial: entry.name === name }));
  await publish(trialOf());
  expect(await refusal(accounts.subscriptions.change(id, { action: "trial" }))).toBe(
    "conflict: no package has a trial",
  );
  await publish(trialOf("Business"));
  expect(await accounts.subscriptions.change(id, { action: "trial" })).toMatchObject({
    package: "Business",
    state: "trial",
  });
});

test("a trial has the length that is valid when it begins, and keeps its end under later terms", async () => {
  const trial = { action: "trial" } as const;
  const begin = async (id: AccountId) => (await accounts.subscriptions.change(id, trial)).periodEnd;
  const { accountId: early } = await newAccount();
  const { accountId: late } = await newAccount();
  const quote = await accounts.subscriptions.preview(late, trial);
  await publish(withTerms("Starter", berlin("2026-06-20"), { trialDays: 14 }));
  expect(await begin(early)).toBe("2026-07-09T22:00:00Z");
  goTo(berlin("2026-06-20"));
  expect(await refusal(accounts.subscriptions.change(late, trial, quote.quoteId))).toMatch(/^price_changed/);
  expect(await begin(late)).toBe("2026-07-03T22:00:00Z");
  for (const action of ["cancel", "withdraw"] as const)
    expect(await accounts.subscriptions.change(early, { action })).toMatchObject({ periodEnd: "2026-07-09T22:00:00Z" });
  goTo(berlin("2026-07-10") - 1);
  expect((await packageUse(database, early, clock.now())).subscription.state).toBe("trial");
  goTo(berlin("2026-07-10"));
  expect((await packageUse(database, early, clock.now())).subscription.state).toBe("active");
});

test("a changed length of the trial adds no notice for accounts that have the package", async () => {
  const { accountId: id } = await newAccount("Starter");
  await publish(withTerms("Starter", berlin("2026-06-20"), { trialDays: 14 }));
  await publish(withTerms("Starter", berlin("2026-06-20"), { trialDays: 60 }));
  const { versions } = (await readPackages(database.kysely)).get("Starter")!;
  expect(versions.map(({ trialDays }) => trialDays)).toEqual([30, 60]);
  await publish();
  expect(await notices(id)).toEqual([]);
  await publish(withTerms("Starter", berlin("2026-06-20"), { trialDays: 60, priceCents: 800 }));
  expect(await notices(id)).toHaveLength(1);
  await publish(withTerms("Starter", berlin("2026-06-20"), { trialDays: 14, priceCents: 800 }));
  expect(await notices(id)).toHaveLength(1);
});

test("a file without packages offers the service's packages", () => {
  const text = `- { id: m, category: language, status: Beta, contextTokens: 100, factors: [{ validFrom: "2026-01-01", factor: 1 }] }`;
  expect(parseCatalogue(text).packages).toBe(servicePackages);
});
