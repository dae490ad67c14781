/**
 * Password hashes: argon2id of Node.js, stored as PHC strings. A hash takes 64 MiB and a thread for 0.2 s. So only a few run
 * at once and others wait in a fair queue. If the queue is full, the answer is 503.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { fewAtOnce, type Asker } from "./few-at-once.ts";

export interface HashCost {
  readonly memoryKib: number;
  readonly passes: number;
}

export type PasswordHashing = ReturnType<typeof createPasswordHashing>;

/** Computes hashes, at most `atOnceMax` at the same time. */
export interface Deriver {
  readonly atOnceMax: number;
  derive(job: Derivation): Promise<Uint8Array>;
}

export interface Derivation extends HashCost {
  readonly password: string;
  readonly salt: Uint8Array;
  readonly tagLength: number;
}

const today: HashCost = { memoryKib: 64 << 10, passes: 3 };
const waiting = { waitingMax: 256, waitMsMax: 30_000 };
const saltBytes = 16;
const tagBytes = 32;
const pattern = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,3}),p=1\$([A-Za-z0-9+/]{22,86})\$([A-Za-z0-9+/]{43,86})$/;

/** Returns a hash that no password has. */
export function hashOfNoPassword(cost: HashCost = today): string {
  return `${prefixOf(cost)}${unpadded(randomBytes(saltBytes))}$${unpadded(randomBytes(tagBytes))}`;
}

function prefixOf({ memoryKib, passes }: HashCost): string {
  return `$argon2id$v=19$m=${memoryKib},t=${passes},p=1$`;
}

/** Makes and verifies hashes. `by`, in its functions, is the person of a hash; it determines the place in the queue. */
export function createPasswordHashing(clock: Clock, deriver: Deriver, cost: HashCost = today) {
  const few = fewAtOnce({ atOnceMax: deriver.atOnceMax, ...waiting }, clock);
  const derive = (by: Asker, job: Derivation) => few(by, () => deriver.derive(job));
  const prefix = prefixOf(cost);
  /** Verified if no hash is stored, so that the time does not reveal this. */
  const decoy = hashOfNoPassword(cost);

  return {
    async hash(password: string, by: Asker): Promise<string> {
      const salt = randomBytes(saltBytes);
      const tag = await derive(by, { password, salt, tagLength: tagBytes, ...cost });
      return `${prefix}${unpadded(salt)}$${unpadded(tag)}`;
    },
    /**
     * Returns whether the password matches. If `stored` is undefined, returns false after the time of a hash at the current
     * cost. Hashes of another cost take another time until a sign-in replaces them.
     */
    async verify(stored: string | undefined, password: string, by: Asker): Promise<boolean> {
      const { tag, ...madeWith } = parse(stored ?? decoy);
      const derived = await derive(by, { password, tagLength: tag.length, ...madeWith });
      return timingSafeEqual(derived, tag) && stored !== undefined;
    },
    /** Returns whether the hash was made with another cost than the current one. */
    isOutdated: (stored: string): boolean => !stored.startsWith(prefix),
  };
}

function parse(stored: string): HashCost & { readonly salt: Buffer; readonly tag: Buffer } {
  const [, memoryKib, passes, salt, tag] = pattern.exec(stored) ?? [];
  if (!tag) throw new Error("a stored password hash is unreadable");
  return {
    memoryKib: Number(memoryKib),
    passes: Number(passes),
    salt: Buffer.from(salt!, "base64"),
    tag: Buffer.from(tag, "base64"),
  };
}

function unpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64").replace(/=+$/, "");
}
