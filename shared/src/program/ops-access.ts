/** Restricts who may read the operations listener: by TLS and by a bearer token, as configured. */
import { createHash, timingSafeEqual } from "node:crypto";
import { resolve } from "node:path";
import { Type, type Static } from "typebox";
import { readSecret } from "../files/private-file.ts";
import { StartError } from "../files/start-error.ts";
import { formatListen, isLoopback, type ListenAddress } from "../http/listen.ts";
import type { TlsPaths } from "../http/tls-files.ts";

export interface OpsConfig {
  readonly listen: ListenAddress;
  /** Absent: plain HTTP. */
  readonly tls?: TlsPaths;
  /** Required by `/metrics` and `/nodes` as `authorization: Bearer …`. Absent: anybody who reaches the listener may ask. */
  readonly token?: string;
}

const closed = { additionalProperties: false };

/** The setting `ops` of `router.yaml` and `agent.yaml`. */
export const opsSchema = Type.Object(
  {
    tls: Type.Optional(
      Type.Object(
        {
          cert: Type.String({ description: "file of the certificate chain" }),
          key: Type.String({ description: "file of its private key" }),
        },
        {
          ...closed,
          description:
            "TLS on `listen.ops`. The certificate and key with which router and node speak to each other will do",
          absent: "plain HTTP",
        },
      ),
    ),
    tokenFile: Type.Optional(
      Type.String({
        description:
          "a file with a token of 16 characters or more, in one line: clients that ask for metrics must send it as `authorization: Bearer …`. `/healthz` and `/readyz` need none",
        absent: "none",
      }),
    ),
  },
  closed,
);

/** Throws `StartError` if the token cannot be used, or if other hosts could read the metrics without a token and without TLS. */
export function readOpsConfig(
  listen: ListenAddress,
  { tls, tokenFile }: Static<typeof opsSchema> = {},
  baseDir: string,
): OpsConfig {
  checkOpsReach(listen, tls !== undefined || tokenFile !== undefined);
  return {
    listen,
    tls: tls && { cert: resolve(baseDir, tls.cert), key: resolve(baseDir, tls.key) },
    token: tokenFile === undefined ? undefined : readToken(resolve(baseDir, tokenFile)),
  };
}

/** Throws `StartError` if others than this host reach the listener, and nothing protects it. */
export function checkOpsReach(listen: ListenAddress, isProtected: boolean): void {
  if (isProtected || isLoopback(listen.host)) return;
  throw new StartError(
    `listen.ops ${formatListen(listen)} is not loopback: set ops.tls (cert, key) or ops.tokenFile, or listen on 127.0.0.1`,
  );
}

/** Throws `StartError` if the file holds no token, or others may read it. `uid`: who reads it. */
export function readToken(file: string, uid?: number | "other"): string {
  const token = readSecret(file, "a token", uid);
  // RFC 6750: what an `authorization` header can carry. 16 characters are beyond guessing over a network.
  if (!/^[\w.~+/-]{16,256}=*$/.test(token))
    throw new StartError(
      `${file} must hold 16 to 256 letters, digits or characters of -._~+/ (such as: openssl rand -hex 24)`,
    );
  return token;
}

/** Whether the header proves that its sender knows the token. Takes the same time for every wrong one. */
export function provesToken(authorization: string | undefined, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(authorization ?? ""), digest(`Bearer ${token}`));
}
