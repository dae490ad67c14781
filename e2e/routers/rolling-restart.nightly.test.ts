import { expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { rollRestarts } from "./rolling-restarts.ts";

const restarts = 50;

test(
  "during 50 rolling restarts of three routers under 500 streams and 50 requests a second, none fails or is cut, and the bill is right [R2]",
  { ...needs("haproxy"), timeout: 3_600_000 },
  async () => {
    const load = { streams: 500, streamTokens: 100, requestsPerSecond: 50 };
    const rolled = await rollRestarts({ routers: 3, restarts, acceptSeconds: 5, ...load });
    console.log(`${rolled.streams} streams, ${rolled.requests} requests; ${rolled.ranOn} continued through a stop`);
    expect(rolled.failed).toEqual([]);
    expect(rolled.faults).toEqual([]);
    expect(rolled.exits).toEqual(Array.from({ length: restarts }, () => 0));
    expect(rolled.ranOn).toBeGreaterThan(restarts * 100);
  },
);
