/**
 * The thread in which passwords are hashed, with a lower priority than the threads that serve streams: a hash keeps a core
 * and its caches busy for a fifth of a second.
 */
import { argon2Sync } from "node:crypto";
import { parentPort } from "node:worker_threads";
import { asBuffer, type OwnBytes } from "@weiche/shared/http/byte-thread.ts";
import { yieldToOthers } from "@weiche/shared/program/thread-priority.ts";
import type { Derivation } from "./password-hashing.ts";

/** `bytes`: the password. */
export type HashJob = Omit<Derivation, "password"> & { readonly bytes: OwnBytes };

yieldToOthers();

parentPort?.on("message", ({ bytes, salt, tagLength, memoryKib, passes }: HashJob) => {
  const parameters = { message: asBuffer(bytes), nonce: salt, parallelism: 1, tagLength, memory: memoryKib, passes };
  const tag = argon2Sync("argon2id", parameters);
  bytes.fill(0);
  parentPort?.postMessage(new Uint8Array(tag));
});
