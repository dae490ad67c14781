import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listCertificates, makeAuthority, makeCertificate, renewCertificates } from "./certificate-folder.ts";

const dayMs = 86_400_000;
const nowMs = Date.UTC(2026, 10, 1);
let folder: string;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "weiche-ca-")), "ca");
});
afterEach(() => rmSync(join(folder, ".."), { recursive: true }));

const certificate = (file: string) => new X509Certificate(readFileSync(join(folder, `${file}.pem`)));

test("a certificate has its names and its own key, and is signed by the authority", () => {
  makeAuthority({ folder, nowMs });
  const made = makeCertificate({ folder, nowMs }, "router", ["router.example", "10.0.0.1", "fd00::1"]);
  expect(made).toEqual({
    kind: "router",
    file: "router-router.example",
    names: ["router.example", "10.0.0.1", "FD00:0:0:0:0:0:0:1"],
    expiresAt: new Date(nowMs + 397 * dayMs).toISOString(),
    daysLeft: 397,
    ofThisAuthority: true,
  });
  const [ca, cert] = [certificate("ca"), certificate("router-router.example")];
  expect([ca.ca, cert.ca]).toEqual([true, false]);
  expect(cert.checkIssued(ca)).toBe(true);
  expect(cert.checkPrivateKey(createPrivateKey(readFileSync(join(folder, "router-router.example.key"))))).toBe(true);
  for (const name of ["router.example"]) expect(cert.checkHost(name)).toBe(name);
  for (const address of ["10.0.0.1", "fd00::1"]) expect(cert.checkIP(address)).toBe(address);
  expect(cert.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  expect(new Set([ca.serialNumber, cert.serialNumber]).size).toBe(2);
  const modes = ["ca.key", "router-router.example.key", "ca.pem"].map(
    (file) => statSync(join(folder, file)).mode & 0o777,
  );
  expect(modes).toEqual([0o600, 0o600, 0o644]);
});

test("certificates that expire soon are renewed with the same names and a new key; others and the authority stay", () => {
  makeAuthority({ folder, nowMs });
  makeCertificate({ folder, nowMs, days: 20 }, "router", ["router.example", "10.0.0.1"]);
  makeCertificate({ folder, nowMs }, "node", ["gpu-1"]);
  const before = ["ca", "router-router.example", "node-gpu-1"].map((file) => certificate(file).fingerprint256);
  const renewed = renewCertificates({ folder, nowMs }, [], 30);
  expect(renewed.map(({ file, names, daysLeft }) => [file, names, daysLeft])).toEqual([
    ["router-router.example", ["router.example", "10.0.0.1"], 397],
  ]);
  const after = ["ca", "router-router.example", "node-gpu-1"].map((file) => certificate(file).fingerprint256);
  expect(after.map((fingerprint, index) => fingerprint === before[index])).toEqual([true, false, true]);
  expect(renewCertificates({ folder, nowMs }, ["node-gpu-1"], 30)).toHaveLength(1);
  expect(listCertificates(folder, nowMs).map(({ kind }) => kind)).toEqual(["ca", "node", "router"]);
});

test("a certificate or key that exists is replaced only if asked", () => {
  makeAuthority({ folder, nowMs });
  makeCertificate({ folder, nowMs }, "node", ["gpu-1"]);
  const key = () => readFileSync(join(folder, "node-gpu-1.key"), "utf8");
  const first = key();
  const again = (options?: { replace: boolean }) => makeCertificate({ folder, nowMs }, "node", ["gpu-1"], options);
  expect(() => again()).toThrow(/node-gpu-1\.pem exists: renew it with "weiche certificates renew node-gpu-1 --dir /);
  rmSync(join(folder, "node-gpu-1.pem"));
  expect(() => again()).toThrow(/node-gpu-1\.key exists: .* or replace certificate and key with --replace/);
  expect(key()).toBe(first);
  again({ replace: true });
  expect(key()).not.toBe(first);
});

test("impossible requests are refused with a line that names the remedy", () => {
  expect(() => makeCertificate({ folder, nowMs }, "node", ["gpu-1"])).toThrow("no authority in");
  expect(() => listCertificates(folder, nowMs)).toThrow("weiche certificates ca --dir");
  makeAuthority({ folder, nowMs });
  expect(() => makeAuthority({ folder, nowMs })).toThrow("would invalidate all certificates");
  for (const name of ["../gpu", "a b", "", "-x", "a/b"])
    expect(() => makeCertificate({ folder, nowMs }, "node", [name])).toThrow("is neither a host name nor an address");
  expect(() => renewCertificates({ folder, nowMs }, ["node-x"], 30)).toThrow("there is no node-x");
});
