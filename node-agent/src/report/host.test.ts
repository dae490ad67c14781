import { totalmem } from "node:os";
import { expect, test } from "vitest";
import { readHost } from "./host.ts";

test("the host tells its use of processors as a share, and its memory in bytes", async () => {
  const reading = await readHost();
  expect(reading.cpuUse).toBeGreaterThanOrEqual(0);
  expect(reading.cpuUse).toBeLessThanOrEqual(1);
  expect(reading.memoryTotalBytes).toBe(totalmem());
  expect(reading.memoryAvailableBytes).toBeLessThan(totalmem());
});
