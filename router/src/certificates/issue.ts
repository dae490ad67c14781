/**
 * Makes a private authority and its certificates for the links between routers and nodes. Keys are ECDSA P-256. Certificates
 * are X.509 version 3 (RFC 5280), encoded by `@peculiar/asn1-x509` and signed by `node:crypto`.
 */
import { createHash, createPublicKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { AsnConvert, OctetString } from "@peculiar/asn1-schema";
import * as x509 from "@peculiar/asn1-x509";

/** A certificate and its private key, as PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

export interface Authority {
  readonly cert: X509Certificate;
  readonly key: KeyObject;
}

interface Validity {
  /** Wall time in ms since 1970. */
  readonly fromMs: number;
  readonly days: number;
}

const dayMs = 86_400_000;
/** Certificates are valid this much earlier, because clocks of hosts may differ. */
const earlierMs = 300_000;
/** Object identifiers: ECDSA with SHA-256 (RFC 5758), and the common name (RFC 5280). */
const ecdsaWithSha256 = "1.2.840.10045.4.3.2";
const commonName = "2.5.4.3";

export function issueAuthority(validity: Validity): Issued {
  const keys = newKeys();
  const name = nameOf("Weiche node authority");
  const extensions = [
    extension(x509.id_ce_basicConstraints, new x509.BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
    usage(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign),
    extension(x509.id_ce_subjectKeyIdentifier, new x509.SubjectKeyIdentifier(identifierOf(keys.publicKey))),
  ];
  const cert = certificate(
    { issuer: name, subject: name, publicKey: keys.publicKey, validity, extensions },
    keys.privateKey,
  );
  return { cert, key: pemOf(keys.privateKey) };
}

/** Makes a certificate for servers and clients. `names`: host names and addresses; the first is the common name. */
export function issueCertificate(
  authority: Authority,
  names: readonly [string, ...string[]],
  validity: Validity,
): Issued {
  const keys = newKeys();
  const alternatives = names.map((name) => new x509.GeneralName(isIP(name) ? { iPAddress: name } : { dNSName: name }));
  const authorityKey = createPublicKey(authority.key);
  const extensions = [
    extension(x509.id_ce_basicConstraints, new x509.BasicConstraints({ cA: false }), true),
    usage(x509.KeyUsageFlags.digitalSignature),
    extension(x509.id_ce_extKeyUsage, new x509.ExtendedKeyUsage([x509.id_kp_serverAuth, x509.id_kp_clientAuth])),
    extension(x509.id_ce_subjectAltName, new x509.SubjectAlternativeName(alternatives)),
    extension(x509.id_ce_subjectKeyIdentifier, new x509.SubjectKeyIdentifier(identifierOf(keys.publicKey))),
    extension(
      x509.id_ce_authorityKeyIdentifier,
      new x509.AuthorityKeyIdentifier({ keyIdentifier: new x509.KeyIdentifier(identifierOf(authorityKey)) }),
    ),
  ];
  const issuer = AsnConvert.parse(authority.cert.raw, x509.Certificate).tbsCertificate.subject;
  const cert = certificate(
    { issuer, subject: nameOf(names[0]), publicKey: keys.publicKey, validity, extensions },
    authority.key,
  );
  return { cert, key: pemOf(keys.privateKey) };
}

interface Content {
  readonly issuer: x509.Name;
  readonly subject: x509.Name;
  readonly publicKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly x509.Extension[];
}

function certificate({ issuer, subject, publicKey, validity, extensions }: Content, signer: KeyObject): string {
  const { fromMs, days } = validity;
  const algorithm = new x509.AlgorithmIdentifier({ algorithm: ecdsaWithSha256 });
  const content = new x509.TBSCertificate({
    version: x509.Version.v3,
    serialNumber: bytesOf(serialNumber()),
    signature: algorithm,
    issuer,
    validity: new x509.Validity({ notBefore: new Date(fromMs - earlierMs), notAfter: new Date(fromMs + days * dayMs) }),
    subject,
    subjectPublicKeyInfo: AsnConvert.parse(derOf(publicKey), x509.SubjectPublicKeyInfo),
    extensions: new x509.Extensions([...extensions]),
  });
  const signature = sign("sha256", Buffer.from(AsnConvert.serialize(content)), signer);
  const whole = new x509.Certificate({
    tbsCertificate: content,
    signatureAlgorithm: algorithm,
    signatureValue: bytesOf(signature),
  });
  return new X509Certificate(Buffer.from(AsnConvert.serialize(whole))).toString();
}

function newKeys(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function nameOf(text: string): x509.Name {
  const value = new x509.AttributeValue({ utf8String: text });
  const attribute = new x509.AttributeTypeAndValue({ type: commonName, value });
  return new x509.Name([new x509.RelativeDistinguishedName([attribute])]);
}

function extension(id: string, value: object, critical = false): x509.Extension {
  return new x509.Extension({ extnID: id, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function usage(flags: number): x509.Extension {
  return extension(x509.id_ce_keyUsage, new x509.KeyUsage(flags), true);
}

/** Returns 16 random bytes that are a positive number without a leading zero byte. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return bytes;
}

/** Returns the key identifier of RFC 5280: the SHA-1 of the public key's bits. */
function identifierOf(publicKey: KeyObject): ArrayBuffer {
  const { subjectPublicKey } = AsnConvert.parse(derOf(publicKey), x509.SubjectPublicKeyInfo);
  return bytesOf(createHash("sha1").update(Buffer.from(subjectPublicKey)).digest());
}

function derOf(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: "spki", format: "der" });
}

function pemOf(privateKey: KeyObject): string {
  return privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}

function bytesOf(buffer: Buffer): ArrayBuffer {
  return new Uint8Array(buffer).buffer;
}
