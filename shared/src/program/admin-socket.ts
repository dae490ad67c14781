/** A process's admin API: HTTP and JSON over a Unix socket in its data directory, which only its user can open. */
import { once } from "node:events";
import { chmodSync, rmSync } from "node:fs";
import { request as httpRequest, type Server } from "node:http";
import { StartError } from "../files/start-error.ts";

/** Longest path of a Unix socket on Linux (`sun_path` without its final zero). */
export const socketPathBytesMax = 107;

/** Listens on the socket, replacing one that a killed process left. The caller holds the directory's lock. */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) > socketPathBytesMax) {
    throw new StartError(
      `the path of the admin socket is over ${socketPathBytesMax} bytes: ${path}; choose a shorter data directory`,
    );
  }
  rmSync(path, { force: true });
  const umask = process.umask(0o177);
  try {
    server.listen(path);
    await once(server, "listening");
  } finally {
    process.umask(umask);
  }
  chmodSync(path, 0o600);
}

/** No process listens on the socket. */
export class NobodyThere extends Error {}

export interface AdminAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Sends one request to an admin socket. Rejects with `NobodyThere` if nothing listens. */
export function askSocket(
  socketPath: string,
  method: "GET" | "POST" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
): Promise<AdminAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { socketPath, method, path, headers: { "content-type": "application/json" } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          resolve({ status: response.statusCode ?? 0, body: text === "" ? undefined : (JSON.parse(text) as unknown) });
        });
      },
    );
    request.once("error", (error: NodeJS.ErrnoException) => {
      const absent = error.code === "ENOENT" || error.code === "ECONNREFUSED";
      reject(absent ? new NobodyThere(`nothing answers on ${socketPath}`) : error);
    });
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
