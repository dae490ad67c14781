/** Restricts access to the operations listener by TLS and a bearer token, as configured. */
import { createHash, timingSafeEqual } from "node:crypto";
import { resolve } from "node:path";
import { Type, type Static } from "typebox";
import { readSecret } from "../files/private-file.ts";
import { StartError } from "../files/start-error.ts";
import { formatListen, isLoopback, type ListenAddress } from "../http/listen.ts";
import type { TlsPaths } from "../http/tls-files.ts";

export interface OpsConfig {
  readonly listen: ListenAddress;
  /** If undefined, the listener uses plain HTTP. */
  readonly tls?: TlsPaths;
  /** Token that `/metrics` and `/nodes` require as `authorization: Bearer …`. If undefined, they need no token. */
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
          description: "TLS on `listen.ops`. The certificate and key of the links between router and nodes can be used",
          absent: "plain HTTP",
        },
      ),
    ),
    tokenFile: Type.Optional(
      Type.String({
        description:
          "a file with a token of at least 16 characters in one line. Clients must send it as `authorization: Bearer …` to read metrics. `/healthz` and `/readyz` need no token",
        absent: "none",
      }),
    ),
  },
  closed,
);

/**
 * Reads the settings. Throws `StartError` for an unusable token, or if other hosts could read metrics without token and
 * TLS.
 */
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

/** Throws `StartError` if other hosts can reach the listener and nothing protects it. */
export function checkOpsReach(listen: ListenAddress, isProtected: boolean): void {
  if (isProtected || isLoopback(listen.host)) return;
  throw new StartError(
    `listen.ops ${formatListen(listen)} is not loopback: set ops.tls (cert, key) or ops.tokenFile, or listen on 127.0.0.1`,
  );
}

/** Reads the token. Throws `StartError` if the file has none, or if others may read it. `uid`: the reader. */
export function readToken(file: string, uid?: number | "other"): string {
  const token = readSecret(file, "a token", uid);
  // RFC 6750: the characters of an `authorization` header. 16 characters cannot be guessed over a network.
  if (!/^[\w.~+/-]{16,256}=*$/.test(token))
    throw new StartError(
      `${file} must hold 16 to 256 letters, digits or characters of -._~+/ (such as: openssl rand -hex 24)`,
    );
  return token;
}

/** Returns whether the header contains the token. Takes the same time for every wrong token. */
export function provesToken(authorization: string | undefined, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(authorization ?? ""), digest(`Bearer ${token}`));
}
