import { randomUUID } from "node:crypto";
import type { WallClock } from "./time/clock.ts";

/** Typed ids: the compiler refuses a key's id where an account's id is expected. */
declare const kind: unique symbol;
type Id<Kind extends string> = string & { readonly [kind]: Kind };

export type AccountId = Id<"account">;
export type UserId = Id<"user">;
export type KeyId = Id<"key">;
export type NodeId = Id<"node">;
export type ModelId = Id<"model">;
export type SlotName = Id<"slot">;
/** A UUIDv7 that the router makes when it accepts a request. Its timestamp is the time of acceptance. */
export type RequestId = Id<"request">;

/** Names of nodes and of their slots. */
export const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** Types a string as an id. Use at borders only, such as parsers. */
export function asId<T extends Id<string>>(text: string): T {
  return text as T;
}

/**
 * Makes a UUIDv7 (RFC 9562): 48 bits of milliseconds and 74 random bits. Node draws these bits in advance (0.7 µs, not
 * 2.2).
 */
export function uuidv7(clock: WallClock, uuidv4: () => string = randomUUID): string {
  const time = clock.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${uuidv4().slice(15)}`;
}

const uuidv7Pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function isUuidv7(text: string): boolean {
  return uuidv7Pattern.test(text);
}

/** Returns when a UUIDv7 was made, in milliseconds since the epoch. */
export function uuidv7TimeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
