/** The TLS of the public listeners: only ciphers with forward secrecy and authenticated encryption. */
import { once } from "node:events";
import { connect, createSecureContext, type ConnectionOptions } from "node:tls";
import { describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { certificate, rsaCertificate } from "../nodes/certificate.ts";
import { startListener, type ListenerKind } from "./listener-rig.ts";
import { until } from "./raw-client.ts";
import { temporaryFolder } from "../db/database-fixture.ts";

const { path: folder } = await forThisFile(temporaryFolder());
const certificates = { ecdsa: certificate(folder, "ecdsa"), rsa: rsaCertificate() };

/** Returns the negotiated suite, or the code of the refusal. */
async function handshake(port: number, options: ConnectionOptions): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
  try {
    await once(socket, "secureConnect");
    return `${socket.getProtocol()} ${socket.getCipher().name}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "refused";
  } finally {
    socket.destroy();
  }
}

const v12 = (ciphers: string): ConnectionOptions => ({
  ciphers: `${ciphers}@SECLEVEL=0`,
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
});
const accepted = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"];
const refused = ["AES128-SHA", "AES128-SHA256", "AES256-SHA", "AES256-SHA384", "AES128-CCM", "ARIA128-GCM-SHA256"];
const refusedOfRsa = [
  "AES128-GCM-SHA256",
  "AES256-GCM-SHA384",
  "AES128-SHA",
  "AES256-SHA256",
  "DHE-RSA-AES128-GCM-SHA256",
];

/** The server's alert if it shares no cipher with the client. */
const noCipher = "ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE";

/** Returns whether this test's client can offer the suite. */
function isKnown(suite: string): boolean {
  try {
    createSecureContext(v12(suite));
    return true;
  } catch {
    return false;
  }
}

describe.each(["api", "portal"] as const)("%s", (kind: ListenerKind) => {
  test.each(["ecdsa", "rsa"] as const)(
    "modern suites are accepted and all others refused, with a key for %s",
    async (type) => {
      await using listener = await startListener(kind, {
        tls: { current: certificates[type], onChange: () => () => {} },
      });
      const exchange = `ECDHE-${type.toUpperCase()}`;
      expect(await handshake(listener.port, {})).toMatch(/^TLSv1\.3 /);
      for (const suite of accepted)
        expect(await handshake(listener.port, v12(`${exchange}-${suite}`))).toBe(`TLSv1.2 ${exchange}-${suite}`);
      const others = [...refused.map((suite) => `${exchange}-${suite}`), ...(type === "rsa" ? refusedOfRsa : [])];
      const known = others.filter((suite) => isKnown(suite));
      expect(known.length).toBeGreaterThanOrEqual(4);
      for (const suite of known) expect([suite, await handshake(listener.port, v12(suite))]).toEqual([suite, noCipher]);
      const old = { ciphers: "ALL@SECLEVEL=0", minVersion: "TLSv1", maxVersion: "TLSv1.1" } as const;
      expect(await handshake(listener.port, old)).not.toMatch(/^TLS/);
    },
  );

  test("a client cannot renegotiate TLS, and its attempts do not hold the connection open", async () => {
    const tls = { current: certificates.rsa, onChange: () => () => {} };
    await using listener = await startListener(kind, { tls, times: { headersMsMax: 300 } });
    const options = {
      port: listener.port,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      maxVersion: "TLSv1.2",
    } as const;
    const socket = connect(options)
      .on("error", () => {})
      .resume();
    await once(socket, "secureConnect");
    let renewals = 0;
    const renew = () => void socket.renegotiate({}, (error) => error || (renewals++, renew()));
    renew();
    await until(() => socket.destroyed, 20_000);
    expect(renewals).toBe(0);
  });
});
