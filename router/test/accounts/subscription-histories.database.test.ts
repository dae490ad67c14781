import fc from "fast-check";
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { servicePackages, type PackageEntry } from "@weiche/shared/packages.ts";
import { asId, uuidv7, type AccountId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createAccounts } from "../../src/accounts/accounts.ts";
import { timeZone } from "../../src/subscriptions/billing-period.ts";
import { packageUse } from "../../src/subscriptions/package-use.ts";
import { publishPackages } from "../../src/subscriptions/publish-packages.ts";
import { RequestError } from "../../src/rights/request-error.ts";
import { createEvaluator } from "../../src/usage/evaluator.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { readUsageTable } from "../../src/usage/usage-table.ts";
import { testDatabases } from "../db/database-fixture.ts";
import {
  histories,
  historiesMsMax,
  lengths,
  Model,
  modelBook,
  moved,
  newTerms,
  step,
  stepsMax,
} from "./subscription-model.ts";
import { makeRecord } from "../usage/usage-records.ts";

let count = 0;
const server = await forThisFile(testDatabases());
const database = await server.newDatabase();

interface Holder {
  readonly accountId: AccountId;
  readonly userId: UserId;
  readonly keyId: KeyId;
}

async function spend(by: Holder, clock: VirtualClock, credits: number): Promise<void> {
  await makeUsageDays(database.pool, [clock.now()]);
  const record = makeRecord(createRandom(1), clock.now(), {
    ...by,
    requestId: asId(uuidv7(clock)),
    promptTokens: credits,
    completionTokens: 0,
    factor: millicredits(1_000n),
  });
  await commitUsage(database.pool, [{ node: asId("node-1"), record }]);
}

async function isExhausted({ accountId }: Holder, nowMs: number): Promise<boolean> {
  const account = database.kysely.selectFrom("accounts").select("exhaustedUntil").where("id", "=", accountId);
  const { exhaustedUntil } = await account.executeTakeFirstOrThrow();
  return (exhaustedUntil?.epochMilliseconds ?? 0) > nowMs;
}

type Coming = typeof newTerms extends fc.Arbitrary<infer T> ? T : never;
const dbStep = fc.tuple(step, fc.option(newTerms, { freq: 4 })).map(([one, coming]) => ({ ...one, coming }));

/** Returns the packages of a catalogue file with further terms of one package. Earlier additions stay. */
function withTerms(
  entries: readonly PackageEntry[],
  { package: name, cents, credits, trialDays }: Coming,
  validFromMs: number,
) {
  return entries.map((entry) => {
    if (entry.name !== name) return entry;
    const terms = { priceCents: cents, creditsPerMonth: BigInt(credits), trialDays };
    const added = { ...entry.versions[0]!, ...terms, validFromMs };
    const others = entry.versions.filter((version) => version.validFromMs !== validFromMs);
    return { ...entry, versions: [...others, added].toSorted((a, b) => a.validFromMs - b.validFromMs) };
  });
}

test(
  "after any history of changes, usage and new terms, the database has the model's state, charges, credits and quota [A6]",
  { timeout: historiesMsMax },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(dbStep, lengths(15, stepsMax / 4)), async (steps) => {
        // Restores the packages of the first start, because all histories share this database.
        await database.pool.query("delete from package_terms where valid_from > '2026-01-01T00:00:00+01:00'");
        let entries = servicePackages;
        const ofModel = modelBook();
        const clock = new VirtualClock(Date.parse("2026-01-31T11:00:00Z"));
        const accounts = createAccounts({ database, clock, portalUrl: "" });
        const evaluator = createEvaluator(database, clock, accounts.subscriptions, { creditsEvaluated() {} });
        const { id: accountId, ownerUserId } = await accounts.create({
          name: "A",
          ownerEmail: `o${++count}@example.com`,
        });
        const userId = asId<UserId>(ownerUserId);
        const { id: keyId } = await accounts.keys.create(userId, { name: "ci" });
        const holder = { accountId, userId, keyId };
        const model = new Model(ofModel);
        for (const { waitMs, toMidnight, kind, package: name, credits, coming } of steps) {
          clock.advance(moved(clock.now(), waitMs, toMidnight) - clock.now());
          model.liveUntil(clock.now());
          if (coming) {
            const fromMs = moved(clock.now(), coming.inMs + 2, coming.toMidnight);
            entries = withTerms(entries, coming, fromMs);
            await publishPackages(database, entries, clock.now());
            const others = ofModel[coming.package]!.filter((terms) => terms.fromMs !== fromMs);
            ofModel[coming.package] = [...others, { ...coming, fromMs }];
          }
          const today = Temporal.Instant.fromEpochMilliseconds(clock.now()).toZonedDateTimeISO(timeZone).toPlainDate();
          const accepted = model.act(kind, name, today, clock.now());
          const named = ["order", "upgrade", "downgrade"].includes(kind) ? { package: name } : {};
          const done = await accounts.subscriptions.change(accountId, { action: kind, ...named }).then(
            () => true,
            (error: unknown) => !(error instanceof RequestError),
          );
          expect(done).toBe(accepted);
          clock.advance(1);
          model.liveUntil(clock.now()); // this millisecond may be the last of a period
          // Enough to exhaust quotas sometimes, at most 100 million.
          await spend(holder, clock, credits * 100);
          model.used += model.name ? credits * 100 : 0;
          await evaluator.evaluate();
          expect((await packageUse(database, accountId, clock.now())).subscription.package).toBe(model.name ?? null);
          const lines = await accounts.subscriptions.invoice(accountId);
          expect(lines.reduce((sum, { amountCents }) => sum + amountCents, 0)).toBe(model.cents);
          if (!model.name) continue;
          const { totals } = await readUsageTable(database, clock, accountId, { by: ["day"] });
          expect(Number(totals.credits)).toBe(model.used);
          expect(await isExhausted(holder, clock.now())).toBe(model.used >= model.booked.credits);
        }
      }),
      // Shrinking takes longer than the test's timeout. The message has the seed that repeats the failed history.
      { numRuns: Math.max(4, histories / 100), endOnFailure: true },
    );
  },
);
