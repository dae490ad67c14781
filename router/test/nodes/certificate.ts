/** Certificates of listeners, and the certificate that a listener shows to clients. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { request, type RequestOptions } from "node:https";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import type { TlsMaterial } from "@weiche/shared/http/tls-files.ts";
import { issueAuthority, issueCertificate } from "../../src/certificates/issue.ts";

/** With an ECDSA key; also as `NAME.pem` and `NAME.key` in the folder. Its common name is `name`. */
export function certificate(folder: string, name: string): TlsMaterial {
  const validity = { fromMs: Date.now(), days: 2 };
  const { cert: ca, key: caKey } = issueAuthority(validity);
  const authority = { cert: new X509Certificate(ca), key: createPrivateKey(caKey) };
  const { cert, key } = issueCertificate(authority, [name], validity);
  writeFileSync(join(folder, `${name}.pem`), cert);
  writeFileSync(join(folder, `${name}.key`), key, { mode: 0o600 });
  return { cert: Buffer.from(cert), key: Buffer.from(key), ca: Buffer.from(ca), minVersion: "TLSv1.3" };
}

/** With an RSA key, which tests alone use, and which is valid for a hundred years. */
export function rsaCertificate(): TlsMaterial {
  const [cert, key] = ["pem", "key"].map((kind) => readFileSync(join(import.meta.dirname, `rsa-certificate.${kind}`)));
  return { cert: cert!, key: key!, ca: cert!, minVersion: "TLSv1.3" };
}

/** Name in the server's certificate, and the status of its answer. */
export function askTls(port: number, path: string, headers: RequestOptions["headers"] = {}): Promise<[string, number]> {
  return new Promise((resolve, reject) => {
    const options = { port, host: "127.0.0.1", path, rejectUnauthorized: false, agent: false as const, headers };
    request(options, (response) => {
      const name = String((response.socket as TLSSocket).getPeerCertificate().subject.CN);
      response.resume().once("end", () => resolve([name, response.statusCode!]));
    })
      .once("error", reject)
      .end();
  });
}
