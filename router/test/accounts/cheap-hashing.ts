/** Cheap password hashes, made in this process, for tests about other subjects. */
import { argon2Sync } from "node:crypto";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import {
  createPasswordHashing,
  type Deriver,
  type HashCost,
  type PasswordHashing,
} from "../../src/sign-in/password-hashing.ts";

export const inThisThread: Deriver = {
  atOnceMax: 4,
  derive: async ({ password, salt, tagLength, memoryKib, passes }) =>
    argon2Sync("argon2id", {
      message: password,
      nonce: salt,
      parallelism: 1,
      tagLength,
      memory: memoryKib,
      passes,
    }),
};

export function cheapHashing(
  cost: HashCost = { memoryKib: 8, passes: 1 },
  clock: Clock = systemClock,
): PasswordHashing {
  return createPasswordHashing(clock, inThisThread, cost);
}
