import { expect, test } from "vitest";
import { createMetricRegistry } from "./metric-registry.ts";
import { certificateFiles, firstExpiryMs, isEnding, publishCertificates } from "./certificate-expiry.ts";

/** A certificate from 2026, valid for four years. Its key was deleted. */
const short = Buffer.from(`-----BEGIN CERTIFICATE-----
MIIBgjCCASmgAwIBAgIQQzWTlFN+NEII9RNUMSv3gDAKBggqhkjOPQQDAjAgMR4w
HAYDVQQDDBVXZWljaGUgbm9kZSBhdXRob3JpdHkwHhcNMjUxMjMxMjM1NTAwWhcN
MzAwMTAxMDAwMDAwWjAgMR4wHAYDVQQDDBVXZWljaGUgbm9kZSBhdXRob3JpdHkw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARYASpO0DCuWsznusNdgEbixI8EEC2j
0tXB5eTmAvLjz4C96mKZQiHKoFfTDtLDT3e2Nxm9HWAP+GIfgdf1I3v+o0UwQzAS
BgNVHRMBAf8ECDAGAQH/AgEAMA4GA1UdDwEB/wQEAwIBBjAdBgNVHQ4EFgQUMMlh
Rn+45zqURJ8sFygiY1ShAcwwCgYIKoZIzj0EAwIDRwAwRAIgF8ZKcvwzfotA9r5P
vgawfSkbQYZtHaiaJjKJjax5wdcCIF0PwpaZGppxrAUdJeo596L2GmmGH/tGp56Z
Zb0nTFAv
-----END CERTIFICATE-----
`);
/** A certificate that is valid for fourteen years. */
const long = Buffer.from(`-----BEGIN CERTIFICATE-----
MIIBgjCCASmgAwIBAgIQXHnEpUoeY27ZELTkktofRTAKBggqhkjOPQQDAjAgMR4w
HAYDVQQDDBVXZWljaGUgbm9kZSBhdXRob3JpdHkwHhcNMjUxMjMxMjM1NTAwWhcN
NDAwMTAxMDAwMDAwWjAgMR4wHAYDVQQDDBVXZWljaGUgbm9kZSBhdXRob3JpdHkw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR5eeYirPRoiVOJlMdZNv/YBtgdw50M
LLMw43FHt9mOWw3aBEhLNVGKywb9J2MPiRO+MR1Tgsv1+XmWooIDLsrco0UwQzAS
BgNVHRMBAf8ECDAGAQH/AgEAMA4GA1UdDwEB/wQEAwIBBjAdBgNVHQ4EFgQUZ/Ej
bcG440UDvZUlyhfrOQYmB08wCgYIKoZIzj0EAwIDRwAwRAIga22TyGzDcrL2q+XY
k0XGOQW+AWuTZvZctmIH1zlo7/0CIAFozGqR2TIoddPu33esfo5lmNiLXjpjj6BR
wcWS+rlq
-----END CERTIFICATE-----
`);
const dayMs = 86_400_000;
const ends = { short: Date.UTC(2030, 0, 1), long: Date.UTC(2040, 0, 1) };

test("a file expires when the first of its certificates expires", () => {
  expect(firstExpiryMs(long)).toBe(ends.long);
  expect(firstExpiryMs(Buffer.concat([long, short]))).toBe(ends.short);
});

test("each file in use has its expiry as a metric, and a use without TLS has no metric", async () => {
  const { gauge, registry } = createMetricRegistry();
  const expiry = gauge("expiry_timestamp_seconds", "When", ["use", "file"]);
  const current = { cert: short, ca: long, key: Buffer.alloc(0), minVersion: "TLSv1.3" } as const;
  const paths = { cert: "cert.pem", key: "key.pem", ca: "ca.pem" };
  publishCertificates(expiry, { links: { current, paths }, ops: undefined });
  const { values } = await registry.getSingleMetric("expiry_timestamp_seconds")!.get();
  expect(values.map(({ labels, value }) => [labels, value])).toEqual([
    [{ use: "links", file: "cert" }, ends.short / 1000],
    [{ use: "links", file: "ca" }, ends.long / 1000],
  ]);
});

test("each file in use has its path and remaining days, and counts as ending below 30 days", () => {
  const current = { cert: short, ca: long, key: Buffer.alloc(0), minVersion: "TLSv1.3" } as const;
  const paths = { cert: "/etc/weiche/cert.pem", key: "key.pem", ca: "/etc/weiche/ca.pem" };
  const nowMs = ends.short - 29 * dayMs;
  const files = certificateFiles({ nodes: { current, paths }, ops: undefined }, nowMs);
  expect(files.map((each) => [each.use, each.file, each.path, each.daysLeft, isEnding(each)])).toEqual([
    ["nodes", "cert", "/etc/weiche/cert.pem", 29, true],
    ["nodes", "ca", "/etc/weiche/ca.pem", 29 + 3_652, false],
  ]);
  const over = certificateFiles({ nodes: { current, paths } }, nowMs + 40 * dayMs);
  expect(over.map(({ daysLeft }) => daysLeft)).toEqual([-11, 3_652 - 11]);
});
