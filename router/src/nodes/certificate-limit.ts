/**
 * Limits the connections of each certificate to a port for nodes: how many are open, and how often one begins. It acts
 * after the handshake, because only the handshake shows the certificate. A renewed certificate has the names of the
 * earlier one, and shares its limits.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { connectionsMax } from "@weiche/shared/node-protocol.ts";
import { leaked, waitMs, type Bucket } from "../sign-in/leaky-bucket.ts";

/**
 * Open connections of a port for each node that a certificate names. An agent holds at most twice `connectionsMax` data
 * connections to a router, and one link. The rest is for connections of earlier processes that have not ended yet.
 */
export const connectionsPerNameMax = 8 * connectionsMax;

/**
 * Handshakes for each node that a certificate names. The burst replaces all connections twice. After failures an agent
 * dials once in two seconds, and gRPC may dial once more for it.
 */
const handshakes = { burst: 2 * connectionsPerNameMax, leakMs: 200 };

/** `too-many`: too many connections are open. `too-often`: too many handshakes in too short a time. */
type CertificateVerdict = "admitted" | "too-many" | "too-often";

interface OfCertificate {
  open: number;
  begun: Bucket;
}

export class CertificateLimit {
  readonly #clock: Clock;
  readonly #certificates = new Map<string, OfCertificate>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of certificates in memory. */
  get size(): number {
    return this.#certificates.size;
  }

  /** Counts a handshake. `names`: the certificate's names, separated by commas. Call `closed` for an admitted connection. */
  admit(names: string): CertificateVerdict {
    const certificate = this.#begin(names);
    if (!certificate) return "too-often";
    if (certificate.open >= connectionsPerNameMax * nodesOf(names)) return "too-many";
    certificate.open++;
    return "admitted";
  }

  /** Counts a further call on an open connection like a handshake. Returns whether it is admitted. */
  admitCall(names: string): boolean {
    return this.#begin(names) !== undefined;
  }

  closed(names: string): void {
    this.#certificates.get(names)!.open--;
  }

  /** Returns undefined if the certificate begins connections and calls too often. */
  #begin(names: string): OfCertificate | undefined {
    const nowMs = this.#clock.monotonicMs();
    const nodes = nodesOf(names);
    const rule = { burst: handshakes.burst * nodes, leakMs: handshakes.leakMs / nodes };
    const certificate = this.#certificates.get(names) ?? this.#remember(names, nowMs);
    if (waitMs(certificate.begun, rule, nowMs) > 0) return undefined;
    certificate.begun = { level: leaked(certificate.begun, rule, nowMs) + 1, atMs: nowMs };
    return certificate;
  }

  /** Also forgets certificates without a connection whose last handshake is so long ago that it no longer counts. */
  #remember(names: string, nowMs: number): OfCertificate {
    const goneMs = nowMs - handshakes.burst * handshakes.leakMs;
    for (const [other, { open, begun }] of this.#certificates)
      if (open === 0 && begun.atMs < goneMs) this.#certificates.delete(other);
    const certificate = { open: 0, begun: { level: 0, atMs: nowMs } };
    this.#certificates.set(names, certificate);
    return certificate;
  }
}

function nodesOf(names: string): number {
  return names.split(",").length;
}
