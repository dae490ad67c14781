/** Reads the certificate, key and CA of a listener or link from files, and reads them again when they change. */
import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { every, type Clock } from "../time/clock.ts";
import { readForStart, StartError } from "../files/start-error.ts";
import { checkPrivate } from "../files/private-file.ts";

export interface TlsPaths {
  readonly cert: string;
  readonly key: string;
  /** The authority that signs the peer's certificate. If undefined, the peer needs no certificate. */
  readonly ca?: string;
}

/** Options for `node:tls`. `minVersion` applies to connections between two programs of Weiche. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
  readonly minVersion: "TLSv1.3";
}

export interface TlsFilesEvents {
  tlsReloaded(): void;
  /** The files on disk are unusable. The previous material stays in use. */
  tlsReloadFailed(reason: string): void;
}

export interface TlsFiles extends Disposable {
  readonly paths: TlsPaths;
  readonly current: TlsMaterial;
  /** Calls back with each new material. Call the returned function to unsubscribe. */
  onChange(callback: (material: TlsMaterial) => void): () => void;
}

const lookEveryMs = 5_000;

/** Throws `StartError` if the files are unusable, or if other users may read the key. */
export function openTlsFiles(paths: TlsPaths, clock: Clock, events: TlsFilesEvents): TlsFiles {
  let current = read(paths);
  let refused = "";
  const listeners = new Set<(material: TlsMaterial) => void>();
  const timer = every(clock, lookEveryMs, () => {
    try {
      const next = read(paths);
      refused = "";
      if (isSame(next, current)) return;
      current = next;
      events.tlsReloaded();
      for (const listener of listeners) listener(next);
    } catch (error) {
      const { message } = error as Error;
      if (message !== refused) events.tlsReloadFailed(message);
      refused = message;
    }
  });
  return {
    paths,
    get current() {
      return current;
    },
    onChange(callback) {
      listeners.add(callback);
      return () => listeners.delete(callback);
    },
    [Symbol.dispose]: () => timer.cancel(),
  };
}

/** Returns whether the certificate names exactly this node. */
export function namesNode(certificate: X509Certificate, node: string): boolean {
  return certificate.checkHost(node, { subject: "never", wildcards: false }) === node;
}

function read(paths: TlsPaths): TlsMaterial {
  const [cert, key] = [readForStart(paths.cert), readForStart(paths.key)];
  const ca = paths.ca === undefined ? undefined : readForStart(paths.ca);
  checkPrivate(paths.key, "a private key");
  if (cert.includes("PRIVATE KEY-----")) checkPrivate(paths.cert, "a private key");
  const material = { cert, key, ca, minVersion: "TLSv1.3" } as const;
  try {
    createSecureContext(material);
  } catch (error) {
    throw new StartError(`${Object.values(paths).join(", ")} do not fit: ${(error as Error).message}`);
  }
  return material;
}

function isSame(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.cert.equals(b.cert) && a.key.equals(b.key) && (a.ca?.equals(b.ca!) ?? true);
}
