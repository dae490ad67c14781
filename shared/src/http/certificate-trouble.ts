/** Says in words why TLS did not accept a certificate. */
import type { X509Certificate } from "node:crypto";

const namesCharactersMax = 100;

const unsigned = [
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
];

/**
 * Returns why a certificate was not accepted. `code`: of OpenSSL or Node.js. `whose`: the subject of the sentence.
 * `authority`: the file with the trusted authorities.
 */
export function certificateTrouble(
  code: string,
  certificate: X509Certificate | undefined,
  whose: string,
  authority: string,
): string {
  if (!certificate) return `${whose} is missing`;
  const names = namesOf(certificate);
  const named = `${whose} (${names})`;
  if (code === "CERT_HAS_EXPIRED") return `${named} expired at ${certificate.validToDate.toISOString()}`;
  if (code === "CERT_NOT_YET_VALID")
    return `${named} is not valid before ${certificate.validFromDate.toISOString()}: are the clocks right?`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return `${whose} has only the names ${names}`;
  if (unsigned.includes(code)) return `${named} is not signed by an authority in ${authority}`;
  return `${named} is not accepted: ${code}`;
}

/** Names of a stranger's certificate may have any length. */
function namesOf({ subjectAltName = "no name" }: X509Certificate): string {
  const names = subjectAltName.replaceAll(/(?:DNS|IP Address):/g, "");
  return names.length > namesCharactersMax ? `${names.slice(0, namesCharactersMax)}…` : names;
}

const handshakeWords: Readonly<Record<string, string>> = {
  ERR_SSL_WRONG_VERSION_NUMBER: "the client does not use TLS",
  ERR_SSL_HTTP_REQUEST: "the client does not use TLS",
  ERR_SSL_UNSUPPORTED_PROTOCOL: "the client has no TLS 1.3",
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: "the client does not trust the authority of this router's certificate",
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: "the client refuses this router's certificate as expired",
  ECONNRESET: "the client ended the handshake, as it does if it refuses this router's certificate (ECONNRESET)",
};

/** Returns why a handshake failed before a certificate was seen. `error`: of the server. */
export function handshakeTrouble({ code = "", message }: Error & { readonly code?: string }): string {
  return handshakeWords[code] ?? message.replace(/^\w+:error:\w+:/, "").trim();
}
