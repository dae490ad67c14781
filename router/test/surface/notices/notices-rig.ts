/** A portal in which people of an account get notices. Each test begins with a new account on the same morning. */
import { afterEach, beforeEach } from "vitest";
import type { Catalogue } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type KeyId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { announceCatalogue } from "../../../src/accounts/notices-catalogue.ts";
import { createEvaluator, type Evaluator } from "../../../src/usage/evaluator.ts";
import { commitUsage } from "../../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../../src/usage/usage-days.ts";
import { catalogue as fiveModels } from "../../api/api-harness.ts";
import { makeRecord } from "../../usage/usage-records.ts";
import { startPortal, type Person, type PortalRig } from "../portal-rig.ts";

export const dayMs = 86_400_000;
const startMs = Date.parse("2026-11-14T09:00:00+01:00");

export async function noticesPerTest(): Promise<NoticesRig> {
  const clock = new VirtualClock(startMs);
  const rig = new NoticesRig(await forThisFile(startPortal({ clock })), clock);
  beforeEach(() => rig.begin());
  afterEach(() => rig.end());
  return rig;
}

class NoticesRig {
  readonly portal: PortalRig;
  readonly clock: VirtualClock;
  catalogue: Catalogue = fiveModels;
  changes: readonly ServiceChange[] = [];
  evaluator!: Evaluator;
  /** The Owner of the account. */
  ada!: Person;
  /** Its administrator. */
  anna!: Person;
  /** A member, who has a key. */
  ben!: Person;
  bensKey!: KeyId;

  constructor(portal: PortalRig, clock: VirtualClock) {
    this.portal = portal;
    this.clock = clock;
  }

  async begin(): Promise<void> {
    const { portal, clock } = this;
    clock.advance(startMs - clock.now());
    this.catalogue = fiveModels;
    this.changes = [];
    this.evaluator = this.#openEvaluator();
    this.ada = await portal.newAccount("ACME", { package: "Starter" });
    this.anna = await portal.newUser(this.ada, "admin");
    this.ben = await portal.newUser(this.ada, "member");
    this.bensKey = (await portal.accounts.keys.create(this.ben.id, { name: "batch" })).id;
    clock.advance(1_000);
  }

  async end(): Promise<void> {
    await this.portal.database.pool.query("delete from subscriptions");
  }

  /** Lets two routers read the catalogue at once, and then a restarted router. */
  async lookAtCatalogue(): Promise<void> {
    const { catalogue, changes } = this;
    await Promise.all([
      this.evaluator.evaluate(),
      announceCatalogue(this.portal.database, { catalogue, changes }, this.clock.now()),
    ]);
    await this.#openEvaluator().evaluate();
  }

  async spend(credits: number, by: Person = this.ada, key: KeyId = asId(by.id)): Promise<void> {
    const { pool } = this.portal.database;
    await makeUsageDays(pool, [this.clock.now()]);
    const record = makeRecord(createRandom(1), this.clock.now(), {
      requestId: asId(uuidv7(this.clock)),
      accountId: by.accountId,
      userId: by.id,
      keyId: key,
      promptTokens: credits,
      completionTokens: 0,
      factor: millicredits(1000n),
    });
    await commitUsage(pool, [{ node: asId("node-1"), record }]);
  }

  /** Returns the notices of a person, who signs in again, because days have passed. */
  async seenBy(who: Person, query = "") {
    return (await this.portal.get(`/notices?${query}`, await this.portal.signIn(who))).json;
  }

  async kinds(who: Person) {
    return (await this.seenBy(who)).items.map(({ kind }: { kind: string }) => kind);
  }

  #openEvaluator(): Evaluator {
    const { database, accounts } = this.portal;
    const catalogue = { get: () => this.catalogue, changes: () => this.changes };
    return createEvaluator(database, this.clock, accounts.subscriptions, { creditsEvaluated() {} }, catalogue);
  }
}
