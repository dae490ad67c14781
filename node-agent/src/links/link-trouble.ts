/** Finds out why a router could not be reached, and says it in words. */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect } from "node:tls";
import { certificateTrouble } from "@weiche/shared/http/certificate-trouble.ts";
import { judgeTls } from "@weiche/shared/http/tls-check.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import type { RouterAddress } from "./router-link.ts";

const probeMsMax = 3_000;
/** With these, no router has answered the call. */
const unanswered = /^(UNAVAILABLE|INTERNAL|UNKNOWN|no welcome)/;
const causes: readonly (readonly [code: string, words: string])[] = [
  ["ECONNREFUSED", "nothing listens there"],
  ["EHOSTUNREACH", "the network has no route there"],
  ["ENETUNREACH", "the network has no route there"],
  ["ETIMEDOUT", "nothing answers there"],
];

/**
 * Returns why the link failed. `reason`: what gRPC reports. With TLS, a connection of its own finds out which
 * certificate is not accepted. `nowMs`: wall time.
 */
export async function explainFailure(
  address: RouterAddress,
  tls: TlsFiles | undefined,
  reason: string,
  nowMs: number,
): Promise<string> {
  if (!unanswered.test(reason)) return reason;
  for (const [code, words] of causes) if (reason.includes(code)) return `${words} (${code})`;
  return (tls && (await certificateProblem(address, tls, nowMs))) ?? reason;
}

/** Resolves with undefined if both certificates are accepted. */
function certificateProblem(address: RouterAddress, tls: TlsFiles, nowMs: number): Promise<string | undefined> {
  const { host, ip, port } = address;
  return new Promise((resolve) => {
    const socket = connect({
      ...{ ...tls.current, host: ip, port, ALPNProtocols: ["h2"], rejectUnauthorized: false },
      ...(!isIP(host) && { servername: host }),
    });
    const done = (problem: string | undefined) => {
      resolve(problem);
      socket.destroy();
    };
    let isAccepted = false;
    socket.setTimeout(probeMsMax, () => done(undefined));
    socket.once("secureConnect", () => {
      const code = socket.authorizationError as unknown as string | undefined;
      if (code) return done(routersProblem(code, socket.getPeerX509Certificate(), address, tls));
      isAccepted = true;
    });
    socket.once("data", () => done(undefined)); // The router has accepted this node's certificate.
    socket.once("error", ({ code }: NodeJS.ErrnoException) =>
      done(code === "ERR_SSL_WRONG_VERSION_NUMBER" ? "the program there does not use TLS" : undefined),
    );
    socket.once("close", () => done(isAccepted ? ownProblem(tls, nowMs) : undefined));
  });
}

function routersProblem(
  code: string,
  certificate: X509Certificate | undefined,
  { host }: RouterAddress,
  { paths }: TlsFiles,
): string {
  const trouble = certificateTrouble(code, certificate, "the router's certificate", paths.ca ?? "tls.ca");
  return code === "ERR_TLS_CERT_ALTNAME_INVALID" ? `${trouble}, but agent.yaml calls it ${host}` : trouble;
}

/** The router has closed the connection after TLS. */
function ownProblem({ current, paths }: TlsFiles, nowMs: number): string {
  for (const { file, kind, message } of judgeTls(paths, { nowMs, uid: "other" }))
    if (file === "cert" && (kind === "mistake" || message.includes("is not signed by"))) return message;
  const { issuer, validToDate } = new X509Certificate(current.cert);
  const signer = issuer.replace(/^CN=/, "");
  return `the router does not accept this node's certificate ${paths.cert} (signed by ${signer}, valid until ${validToDate.toISOString()}); its log has the reason`;
}
