/**
 * The thread that hashes passwords. Its priority is lower than that of the threads that serve streams, because a hash uses a
 * whole core and its caches for 0.2 s.
 */
import { argon2Sync } from "node:crypto";
import { parentPort } from "node:worker_threads";
import { asBuffer, type OwnBytes } from "@weiche/shared/http/byte-thread.ts";
import { yieldToOthers } from "@weiche/shared/program/thread-priority.ts";
import type { Derivation } from "./password-hashing.ts";

/** `bytes`: the password in UTF-8. */
export type HashJob = Omit<Derivation, "password"> & { readonly bytes: OwnBytes };

yieldToOthers();

parentPort?.on("message", ({ bytes, salt, tagLength, memoryKib, passes }: HashJob) => {
  const parameters = { message: asBuffer(bytes), nonce: salt, parallelism: 1, tagLength, memory: memoryKib, passes };
  const tag = argon2Sync("argon2id", parameters);
  bytes.fill(0);
  parentPort?.postMessage(new Uint8Array(tag));
});
