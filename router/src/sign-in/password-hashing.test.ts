import { argon2Sync } from "node:crypto";
import { expect, test } from "vitest";
import { cheapHashing, inThisThread } from "../../test/accounts/cheap-hashing.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { createPasswordHashing } from "./password-hashing.ts";
import { goodPassword, normalPassword } from "./password-rules.ts";

const hashing = cheapHashing();
const by = { source: "192.0.2.7", isKnown: false };

test("new hashes are argon2id with 64 MiB, three passes and one lane", async () => {
  const stored = await createPasswordHashing(systemClock, inThisThread).hash("correct horse battery", by);
  const [, name, version, cost, salt, tag] = stored.split("$");
  expect([name, version, cost]).toEqual(["argon2id", "v=19", "m=65536,t=3,p=1"]);
  const nonce = Buffer.from(salt!, "base64");
  const parameters = { nonce, parallelism: 1, tagLength: 32, memory: 65536, passes: 3 };
  const again = argon2Sync("argon2id", { message: "correct horse battery", ...parameters });
  expect(tag).toBe(again.toString("base64").replace(/=+$/, ""));
});

test("only the right password matches a hash, and each hash has its own salt", async () => {
  const stored = await hashing.hash("correct horse battery", by);
  expect(await hashing.hash("correct horse battery", by)).not.toBe(stored);
  expect(await hashing.verify(stored, "correct horse battery", by)).toBe(true);
  expect(await hashing.verify(stored, "correct horse batterz", by)).toBe(false);
  expect(await hashing.verify(undefined, "correct horse battery", by)).toBe(false);
});

test("a hash of another cost can be verified and is outdated", async () => {
  const stored = await cheapHashing({ memoryKib: 16, passes: 2 }).hash("correct horse battery", by);
  expect(await hashing.verify(stored, "correct horse battery", by)).toBe(true);
  expect(hashing.isOutdated(stored)).toBe(true);
  expect(hashing.isOutdated(await hashing.hash("correct horse battery", by))).toBe(false);
});

test.each(["", "$argon2id$v=19$m=8,t=1,p=1$c2FsdA$", "plain", "$argon2i$v=19$m=8,t=1,p=1$AAAA$AAAA"])(
  "verifying a malformed stored hash like %j throws",
  async (stored) => {
    await expect(hashing.verify(stored, "x", by)).rejects.toThrow("unreadable");
  },
);

test("a password is the same in every Unicode composition", () => {
  expect(normalPassword("u\u0308ber")).toBe("\u00fcber");
});

const outcomeOf = (password: string) => {
  try {
    return goodPassword(password) === password ? "accepted" : "normalized";
  } catch (error) {
    return (error as Error).message;
  }
};

test.each([
  ["elevenchars", "at least 12 characters"],
  ["twelve chars", "accepted"],
  ["😀".repeat(11), "at least 12 characters"],
  ["😀".repeat(12), "accepted"],
  ["e\u0301".repeat(11), "at least 12 characters"],
  ["e\u0301".repeat(12), "normalized"],
  ["x".repeat(1024), "accepted"],
  ["x".repeat(1025), "at most 1024 bytes"],
  ["ß".repeat(513), "at most 1024 bytes"],
])("the password %j gives: %s", (password, outcome) => {
  expect(outcomeOf(password)).toContain(outcome);
});
