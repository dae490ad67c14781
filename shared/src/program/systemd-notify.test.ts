import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openServiceManager } from "./systemd-notify.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";

const pid = 4711;
let directory: string;
let clock: VirtualClock;

/** A fake `systemd-notify` that appends each message as a line to the file in NOTIFY_SOCKET. */
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "weiche-notify-"));
  clock = new VirtualClock();
  const program = join(directory, "systemd-notify");
  writeFileSync(
    program,
    `#!/bin/sh\nfor line in "$@"; do printf '%s|' "$line"; done >>"$NOTIFY_SOCKET"\necho >>"$NOTIFY_SOCKET"\n`,
  );
  chmodSync(program, 0o755);
});
afterEach(() => rmSync(directory, { recursive: true }));

function environment(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return { PATH: `${directory}:/usr/bin:/bin`, NOTIFY_SOCKET: join(directory, "said"), ...more };
}

/** Waits for `count` messages and returns all. */
async function said(count: number): Promise<string[]> {
  const file = join(directory, "said");
  return await vi.waitFor(
    () => {
      const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
      if (lines.length < count) throw new Error(`waited for ${count} messages, there are ${lines.length}`);
      return lines;
    },
    { timeout: 10_000, interval: 10 },
  );
}

describe("the service manager", () => {
  test("receives start, readiness and stop in this order", async () => {
    using service = openServiceManager(environment(), pid, clock);
    service.status("loading");
    service.ready("all is well");
    service.stopping("going");
    expect(await said(3)).toEqual(["STATUS=loading|", "READY=1|STATUS=all is well|", "STOPPING=1|STATUS=going|"]);
  });

  test("receives pings at half the watchdog's time, from readiness until disposal", async () => {
    const given = environment({ WATCHDOG_USEC: "30000000", WATCHDOG_PID: String(pid) });
    const service = openServiceManager(given, pid, clock);
    await clock.advanceAsync(60_000);
    service.ready("r");
    await clock.advanceAsync(14_999);
    expect(await said(1)).toEqual(["READY=1|STATUS=r|"]);
    await service.heard();
    await clock.advanceAsync(1);
    expect(await said(2)).toEqual(["READY=1|STATUS=r|", "WATCHDOG=1|"]);
    await service.heard();
    await clock.advanceAsync(15_000);
    expect(await said(3)).toEqual(["READY=1|STATUS=r|", "WATCHDOG=1|", "WATCHDOG=1|"]);
    service[Symbol.dispose]();
    await clock.advanceAsync(60_000);
    service.stopping("s");
    expect(await said(4)).toEqual(["READY=1|STATUS=r|", "WATCHDOG=1|", "WATCHDOG=1|", "STOPPING=1|STATUS=s|"]);
  });

  test("receives no further ping before it has read the last one, so that the stop is not delayed", async () => {
    const service = openServiceManager(environment({ WATCHDOG_USEC: "30000000" }), pid, clock);
    service.ready("r");
    clock.advance(60_000);
    service.stopping("s");
    await service.heard();
    expect(await said(2)).toEqual(["READY=1|STATUS=r|", "STOPPING=1|STATUS=s|"]);
    service[Symbol.dispose]();
  });

  test("receives no pings for another process or without a watchdog", async () => {
    for (const more of [{ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "1" }, {}]) {
      using service = openServiceManager(environment(more), pid, clock);
      service.ready("r");
      await clock.advanceAsync(120_000);
      service.stopping("s");
      expect(await said(2)).toEqual(["READY=1|STATUS=r|", "STOPPING=1|STATUS=s|"]);
      rmSync(join(directory, "said"));
    }
  });

  test("receives messages only from this process, because children inherit no variables", () => {
    const given = environment({ WATCHDOG_USEC: "1", WATCHDOG_PID: "1", HOME: "/h" });
    openServiceManager(given, pid, clock)[Symbol.dispose]();
    expect(Object.keys(given)).toEqual(["PATH", "HOME"]);
  });
});

test("without a service manager, systemd-notify is not started", async () => {
  const given = environment({ WATCHDOG_USEC: "2000" });
  delete given["NOTIFY_SOCKET"];
  using service = openServiceManager(given, pid, clock);
  service.ready("r");
  await clock.advanceAsync(1_000);
  service.stopping("s");
  expect(clock.pending).toBe(0);
});
