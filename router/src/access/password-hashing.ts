/**
 * Password hashes: argon2id of Node.js, stored as PHC strings. A hash takes 64 MiB and a thread for a fifth of a second,
 * so few run at once, some wait, and beyond that 503.
 */
import { argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { ApiError } from "@weiche/shared/errors.ts";
import { fewAtOnce } from "./few-at-once.ts";

export interface HashCost {
  readonly memoryKib: number;
  readonly passes: number;
}

export interface PasswordHashing {
  hash(password: string): Promise<string>;
  /**
   * `stored` undefined: never right, and takes as long as a hash of today's cost. Hashes of before a change of cost take
   * their own time, until their people sign in.
   */
  verify(stored: string | undefined, password: string): Promise<boolean>;
  /** Made with another cost than today's. */
  isOutdated(stored: string): boolean;
}

const today: HashCost = { memoryKib: 64 << 10, passes: 3 };
const atOnceMax = 4;
const waitingMax = 32;
const saltBytes = 16;
const tagBytes = 32;
const parallelism = 1;
const pattern = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,3}),p=1\$([A-Za-z0-9+/]{22,86})\$([A-Za-z0-9+/]{43,86})$/;

export function createPasswordHashing(cost: HashCost = today): PasswordHashing {
  const slots = fewAtOnce(atOnceMax, waitingMax, () => {
    const message = "Too many people are signing in at the same time.";
    return new ApiError("overloaded", message, { retryAfterSeconds: 5 });
  });
  const prefix = `$argon2id$v=19$m=${cost.memoryKib},t=${cost.passes},p=${parallelism}$`;
  /** Of no password. */
  const decoy = `${prefix}${unpadded(randomBytes(saltBytes))}$${unpadded(randomBytes(tagBytes))}`;

  return {
    async hash(password) {
      const salt = randomBytes(saltBytes);
      const tag = await slots.run(() => derive(password, salt, tagBytes, cost));
      return `${prefix}${unpadded(salt)}$${unpadded(tag)}`;
    },
    async verify(stored, password) {
      const { salt, tag, ...madeWith } = parse(stored ?? decoy);
      const derived = await slots.run(() => derive(password, salt, tag.length, madeWith));
      return timingSafeEqual(derived, tag) && stored !== undefined;
    },
    isOutdated: (stored) => !stored.startsWith(prefix),
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

function derive(password: string, nonce: Buffer, tagLength: number, { memoryKib, passes }: HashCost): Promise<Buffer> {
  const parameters = { message: Buffer.from(password), nonce, parallelism, tagLength, memory: memoryKib, passes };
  return new Promise((resolve, reject) =>
    argon2("argon2id", parameters, (error, tag) => (error ? reject(error) : resolve(tag))),
  );
}

function unpadded(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}
