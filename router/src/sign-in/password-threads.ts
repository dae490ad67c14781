/** Threads that hash passwords. In Node.js's own thread pool, four hashes would block all file access and DNS. */
import { availableParallelism } from "node:os";
import { ByteThread } from "@weiche/shared/http/byte-thread.ts";
import type { Deriver } from "./password-hashing.ts";
import type { HashJob } from "./password-worker.ts";

const threadsMax = 2;
const forever = new AbortController().signal;

export function startPasswordThreads(): Deriver & AsyncDisposable {
  // One core stays free for all other work.
  const atOnceMax = Math.max(1, Math.min(threadsMax, availableParallelism() - 1));
  const program = new URL("./password-worker.ts", import.meta.url);
  const threads = Array.from({ length: atOnceMax }, () => new ByteThread<HashJob, Uint8Array>(program));
  const idle = [...threads];
  return {
    atOnceMax,
    async derive({ password, ...job }) {
      const thread = idle.pop()!;
      try {
        return await thread.run({ ...job, bytes: new Uint8Array(Buffer.from(password)) }, forever);
      } finally {
        idle.push(thread);
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(threads.map((thread) => thread[Symbol.asyncDispose]()));
    },
  };
}
