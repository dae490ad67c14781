import { totalmem } from "node:os";
import { expect, test } from "vitest";
import { HostReader } from "./host.ts";

test("the host reports its use of processors as a share, and its memory in bytes", () => {
  const reader = new HostReader();
  reader.read();
  const startedMs = performance.now();
  while (performance.now() - startedMs < 50);
  const { cpuUse, memoryTotalBytes, memoryAvailableBytes } = reader.read();
  expect(cpuUse).toBeGreaterThan(0);
  expect(cpuUse).toBeLessThanOrEqual(1);
  expect(memoryTotalBytes).toBe(totalmem());
  expect(memoryAvailableBytes).toBeGreaterThan(0);
  expect(memoryAvailableBytes).toBeLessThan(totalmem());
});

test("two readings at the same moment give no use", () => {
  const reader = new HostReader();
  expect(Array.from({ length: 20 }, () => reader.read().cpuUse)).toContain(undefined);
});
