import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { CertificateLimit, connectionsPerNameMax } from "./certificate-limit.ts";

function rig() {
  const clock = new VirtualClock();
  const limit = new CertificateLimit(clock);
  /** Connects and disconnects `times` times. Returns how often the connection was admitted. */
  const knock = (names: string, times: number) => {
    let admitted = 0;
    for (let n = 0; n < times; n++) {
      if (limit.admit(names) !== "admitted") continue;
      admitted++;
      limit.closed(names);
    }
    return admitted;
  };
  return { clock, limit, knock };
}

test("a certificate that connects again and again has 128 handshakes at once and 5 per second for each of its nodes, and others are not affected [D10]", () => {
  const { clock, knock } = rig();
  expect(knock("DNS:gpu-1", 5_000)).toBe(128);
  expect(knock("DNS:gpu-2, DNS:gpu-3", 5_000)).toBe(256);
  expect(knock("DNS:gpu-4", 1)).toBe(1);
  for (let second = 0; second < 60; second++) {
    clock.advance(1_000);
    expect([knock("DNS:gpu-1", 100), knock("DNS:gpu-2, DNS:gpu-3", 100)]).toEqual([5, 10]);
  }
});

test("an agent whose 16 data connections break every five seconds is always admitted", () => {
  const { clock, limit } = rig();
  for (let round = 0; round < 1_000; round++) {
    for (let n = 0; n < 16; n++) expect(limit.admit("DNS:gpu-1")).toBe("admitted");
    for (let n = 0; n < 16; n++) limit.closed("DNS:gpu-1");
    clock.advance(5_000);
  }
});

test("a connection above the limit of open connections counts as a handshake, too", () => {
  const { limit } = rig();
  const verdicts = Array.from({ length: 200 }, () => limit.admit("DNS:gpu-1"));
  expect(verdicts.indexOf("too-many")).toBe(connectionsPerNameMax);
  expect(verdicts.indexOf("too-often")).toBe(128);
});

test("a certificate is forgotten once it has no connection and its handshakes no longer count", () => {
  const { clock, limit, knock } = rig();
  expect(limit.admit("DNS:open")).toBe("admitted");
  for (let n = 0; n < 100; n++) knock(`DNS:gpu-${n}`, 200);
  clock.advance(25_000);
  knock("DNS:other", 1);
  expect(limit.size).toBe(102);
  clock.advance(1_000);
  knock("DNS:another", 1);
  expect(limit.size).toBe(3);
  limit.closed("DNS:open");
});
