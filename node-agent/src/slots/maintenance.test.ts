import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Maintenance } from "./maintenance.ts";

let stateDir: string;
beforeAll(() => {
  stateDir = mkdtempSync(join(tmpdir(), "weiche-maintenance-"));
});
afterAll(() => rmSync(stateDir, { recursive: true }));

test("a node is in maintenance if a router or the operator sets it, and only the operator's setting outlives the agent", () => {
  for (const operator of [true, false]) {
    for (const router of [true, false]) {
      const maintenance = new Maintenance(stateDir);
      maintenance.operatorSays(operator);
      maintenance.routerSays(router);
      expect(maintenance.on).toBe(operator || router);
      expect(new Maintenance(stateDir).on, "after a restart").toBe(operator);
    }
  }
});
