/** Promise E5 by the clock. It runs by night, because it compares times; the quick tests compare the work instead. */
import { expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { createIdentity } from "../../src/accounts/identity.ts";
import { createPasswordHashing } from "../../src/sign-in/password-hashing.ts";
import { startPasswordThreads } from "../../src/sign-in/password-threads.ts";
import { testDatabases } from "../db/database-fixture.ts";
import { here, openIdentityRig, password } from "./identity-rig.ts";

const email = "ada@example.com";

test("sign-in takes the same time for known and unknown people, with production hashes [E5]", async () => {
  await using server = await testDatabases();
  const rig = openIdentityRig(await server.newDatabase());
  const person = await rig.newAccount(email);
  await using threads = startPasswordThreads();
  const hashing = createPasswordHashing(systemClock, threads);
  const real = createIdentity({ ...rig.context, hashing });
  const timesOf: Record<"known" | "unknown", number[]> = { known: [], unknown: [] };
  const hash = await hashing.hash(password, { source: here.source, isKnown: true });
  await rig.database.pool.query("update credentials set password = $1 where user_id = $2", [hash, person.userId]);
  for (let n = 0; n < 60; n++) {
    const who = n % 2 === 0 ? "known" : "unknown";
    const claim = { email: who === "known" ? email : "nobody@example.com", password: "wrong wrong wrong" };
    const begunMs = performance.now();
    expect((await real.login.signIn(claim, { ...here, source: `10.1.${n}.1` })).kind).toBe("wrong");
    timesOf[who].push(performance.now() - begunMs);
  }
  const median = (times: number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;
  const [known, unknown] = [median(timesOf.known), median(timesOf.unknown)];
  expect(Math.abs(known - unknown)).toBeLessThan(0.15 * Math.max(known, unknown));
}, 120_000);
