import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createMetricRegistry } from "./metric-registry.ts";
import { certificateFiles, firstExpiryMs, isEnding, publishCertificates } from "./certificate-expiry.ts";

const folder = mkdtempSync(join(tmpdir(), "weiche-expiry-"));
afterAll(() => rmSync(folder, { recursive: true }));
const dayMs = 86_400_000;

function certificate(days: number): Buffer {
  const [key, cert] = ["key", "cert"].map((name) => join(folder, `${name}-${days}.pem`));
  const what = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", String(days), "-subj", "/CN=a"];
  execFileSync("openssl", ["req", "-x509", "-nodes", ...what, "-keyout", key!, "-out", cert!], { stdio: "ignore" });
  return readFileSync(cert!);
}

test("a file expires when the first of its certificates does", () => {
  const [short, long] = [certificate(3), certificate(90)];
  const inDays = (pem: Buffer) => Math.round((firstExpiryMs(pem) - Date.now()) / dayMs);
  expect(inDays(long)).toBe(90);
  expect(inDays(Buffer.concat([long, short]))).toBe(3);
});

test("each file in use has its expiry as a metric, and what goes without TLS has none", async () => {
  const { gauge, registry } = createMetricRegistry();
  const expiry = gauge("expiry_timestamp_seconds", "When", ["use", "file"]);
  const [cert, ca] = [certificate(3), certificate(90)];
  const current = { cert, ca, key: Buffer.alloc(0), minVersion: "TLSv1.3" } as const;
  const paths = { cert: "cert.pem", key: "key.pem", ca: "ca.pem" };
  publishCertificates(expiry, { links: { current, paths }, ops: undefined });
  const { values } = await registry.getSingleMetric("expiry_timestamp_seconds")!.get();
  expect(values.map(({ labels, value }) => [labels, value])).toEqual([
    [{ use: "links", file: "cert" }, firstExpiryMs(cert) / 1000],
    [{ use: "links", file: "ca" }, firstExpiryMs(ca) / 1000],
  ]);
});

test("each file in use says where it is and how many days are left; below 30 it is ending", () => {
  const current = { cert: certificate(29), ca: certificate(90), key: Buffer.alloc(0), minVersion: "TLSv1.3" } as const;
  const paths = { cert: "/etc/weiche/cert.pem", key: "key.pem", ca: "/etc/weiche/ca.pem" };
  const nowMs = firstExpiryMs(current.cert) - 29 * dayMs;
  const files = certificateFiles({ nodes: { current, paths }, ops: undefined }, nowMs);
  expect(files.map((each) => [each.use, each.file, each.path, each.daysLeft, isEnding(each)])).toEqual([
    ["nodes", "cert", "/etc/weiche/cert.pem", 29, true],
    ["nodes", "ca", "/etc/weiche/ca.pem", 90, false],
  ]);
  const over = certificateFiles({ nodes: { current, paths } }, nowMs + 40 * dayMs);
  expect(over.map(({ daysLeft }) => daysLeft)).toEqual([-11, 50]);
});
