import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeAuthority, makeCertificate } from "@weiche/router/src/certificates/certificate-folder.ts";
import { balancerFile } from "../cluster/balancer.ts";
import { needs } from "@weiche/shared/testing/needs.ts";
import { rollRestarts } from "./rolling-restarts.ts";

test("HAProxy accepts deploy/haproxy.cfg unchanged if the certificate exists [R2]", needs("haproxy"), () => {
  const folder = mkdtempSync(join(tmpdir(), "weiche-haproxy-"));
  try {
    makeAuthority({ folder, nowMs: Date.now() });
    makeCertificate({ folder, nowMs: Date.now() }, "router", ["api.example"]);
    const [pem, file] = [join(folder, "weiche.pem"), join(folder, "haproxy.cfg")];
    writeFileSync(pem, ["pem", "key"].map((end) => readFileSync(join(folder, `router-api.example.${end}`))).join("\n"));
    writeFileSync(file, readFileSync(balancerFile, "utf8").replace("/etc/haproxy/weiche.pem", pem));
    expect(execFileSync("haproxy", ["-c", "-f", file], { encoding: "utf8" })).toMatch(/valid/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test(
  "during three rolling restarts behind HAProxy no request fails, no stream is cut, and the bill equals what clients received [R2]",
  needs("haproxy"),
  async () => {
    const load = { streams: 10, streamTokens: 20, requestsPerSecond: 10 };
    const rolled = await rollRestarts({ routers: 2, restarts: 3, acceptSeconds: 2, checkMs: 200, ...load });
    expect(rolled.failed).toEqual([]);
    expect(rolled.faults).toEqual([]);
    expect(rolled.exits).toEqual([0, 0, 0]);
    expect(rolled.ranOn).toBeGreaterThan(3);
    expect(rolled.requests).toBeGreaterThan(30);
  },
);
