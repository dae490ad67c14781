/** Certificates that sign themselves, and what a listener shows whoever connects. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { request, type RequestOptions } from "node:https";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import type { TlsMaterial } from "@weiche/shared/http/tls-files.ts";

const ecdsa = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

export function certificate(folder: string, name: string, newKey: readonly string[] = ecdsa): TlsMaterial {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)];
  const what = [...newKey, "-days", "2", "-subj", `/CN=${name}`];
  execFileSync("openssl", ["req", "-x509", "-nodes", ...what, "-keyout", key, "-out", cert], { stdio: "ignore" });
  return { cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(cert), minVersion: "TLSv1.3" };
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
