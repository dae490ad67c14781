import { describe, expect, test } from "vitest";
import { formatStatus, type TextOptions } from "./status-text.ts";
import type { AgentStatus, SlotStatus } from "./status.ts";

const gib = 2 ** 30;
const idle: SlotStatus = {
  ...{ name: "a", state: "active", active: "small-24b", running: 3, waiting: {}, oldestRunningSeconds: 12.34 },
  ...{ stateAgeSeconds: 7_512, sleepers: [], sleeperMemoryBytes: {} },
};
const quiet: AgentStatus = {
  ...{ node: "gpu-1", version: "1.0.0", maintenance: false, admitting: true },
  slots: [idle],
  engines: [
    {
      ...{ slot: "a", model: "general-3.8-27b", state: "asleep", launcher: "process", pid: 812, ageSeconds: 200_000 },
      ...{ restarts: 2, hostMemoryBytes: 52.25 * gib, gpuMemoryBytes: 1.9 * gib },
    },
    {
      slot: "a",
      model: "small-24b",
      state: "awake",
      launcher: "external",
      restarts: 0,
      kvCacheUse: 0.456,
      prefixCacheHitRate: 0.09,
    },
  ],
  routers: [{ address: "router1.example:7443 (192.0.2.17)", state: "linked", dataSessions: 2 }],
  outbox: { records: 0 },
  certificates: [],
  host: { cpuUse: 0.125, memoryTotalBytes: 251 * gib, memoryAvailableBytes: 131 * gib },
};

/** Returns the line that begins with `begin`, its columns separated by one space. */
function line(begin: string, status: AgentStatus, options?: TextOptions): string | undefined {
  const lines = formatStatus(status, options).split("\n");
  return lines.find((each) => each.startsWith(begin))?.replaceAll(/ {2,}/g, " ");
}
const withSlot = (given: Partial<SlotStatus>): AgentStatus => ({ ...quiet, slots: [{ ...idle, ...given }] });

test("each certificate in use has a row with its remaining days, and one that expires soon or has expired is painted", () => {
  const file = {
    use: "links",
    file: "cert",
    path: "/etc/weiche/node.pem",
    expiresAt: "2026-12-01T00:00:00.000Z",
  } as const;
  const at = (daysLeft: number): AgentStatus => ({ ...quiet, certificates: [{ ...file, daysLeft }] });
  const paint = (tone: string, text: string) => `<${tone}>${text}`;
  expect(line("links", at(90), { paint })).toBe("links /etc/weiche/node.pem 2026-12-01 90");
  expect(line("<yellow>links", at(29), { paint })).toBe("<yellow>links /etc/weiche/node.pem 2026-12-01 29");
  expect(line("<red>links", at(-1), { paint })).toBe("<red>links /etc/weiche/node.pem 2026-12-01 -1");
  expect(line("CERTIFICATE", quiet)).toBeUndefined();
});

describe("a row of status for", () => {
  test("a slot shows its state, models, running requests and ages", () => {
    expect(line("SLOT", quiet)).toBe("SLOT STATE ACTIVE NEXT RUNNING OLDEST FOR");
    expect(line("a", quiet)).toBe("a active small-24b – 3 12.3 s 2 h 5 min");
  });
  test("a slot's waiters are listed below it, by model", () => {
    const waiting = { "general-3.8-27b": 4, "coder-32b": 1 };
    expect(formatStatus(withSlot({ waiting }))).toMatch(/^a .*\n  waiting: general-3.8-27b 4, coder-32b 1$/m);
  });
  test("a drain shows how long it stays open, and then that it is closed", () => {
    const open = withSlot({ state: "draining-open", next: "coder-32b", closesInSeconds: 6.04 });
    expect(line("a", open)).toBe("a draining-open small-24b coder-32b 3 12.3 s 2 h 5 min");
    expect(line("  drain", open)).toBe(" drain: accepts requests for another 6.0 s");
    expect(line("  drain", withSlot({ state: "draining-closed" }))).toBe(" drain: closed, running requests finish");
  });
  test("a switch shows its phase and a bar that is full after its usual time", () => {
    const at = (seconds: number, usualSeconds?: number) =>
      line(
        "  ",
        withSlot({
          state: "starting",
          switching: { seconds, phase: "start", ...(usualSeconds === undefined ? {} : { usualSeconds }) },
        }),
      );
    expect(at(3, 12)).toBe(` start: ${"█".repeat(5)}${"░".repeat(15)} 3.0 s, usually 12.0 s`);
    expect(at(60, 12)).toBe(` start: ${"█".repeat(20)} 60.0 s, usually 12.0 s`);
    expect(at(3)).toBe(" start: for 3.0 s so far");
  });
  test("a failed slot shows the reason and the time of the next try", () => {
    const failed = withSlot({ state: "failed", retryInSeconds: 3.26, failure: "m: exit code 1: no such file" });
    expect(line("  why", failed)).toBe(" why: m: exit code 1: no such file");
    expect(line("  next try", failed)).toBe(" next try in 3.3 s");
    expect(line("  last", withSlot({ state: "empty", failure: "m: signal SIGILL" }))).toBe(
      " last failure: m: signal SIGILL",
    );
  });
  test("an engine shows state, process, age, restarts, GPU and host memory, and a dash for unknown values", () => {
    expect(line("SLOT  ENGINE", quiet)).toBe("SLOT ENGINE STATE PID UP RESTARTS GPU RAM");
    expect(line("a     general", quiet)).toBe("a general-3.8-27b asleep 812 2 d 7 h 2 1.9 GiB 52.3 GiB");
    expect(line("a     small", quiet)).toBe("a small-24b awake – – 0 – –");
    expect(line("  46", quiet)).toBe(" 46 % of the KV cache in use, 9 % of prompt tokens found in it");
    expect(formatStatus({ ...quiet, engines: [] })).toContain("\nno engine runs\n");
  });
  test("the host and each measured GPU show their memory and load", () => {
    expect(line("host", quiet)).toBe("host 120.0 GiB 251.0 GiB 13 % – –");
    expect(formatStatus(quiet)).not.toContain("GPU 0");
    const gpu = { index: 0, uuid: "x", memoryUsedBytes: 98 * gib, memoryTotalBytes: 140 * gib, utilisation: 0.37 };
    expect(line("GPU 0", { ...quiet, gpus: [gpu] })).toBe("GPU 0 98.0 GiB 140.0 GiB 37 % – –");
    const hot = { ...gpu, temperatureCelsius: 61, powerWatts: 276.5 };
    expect(line("GPU 0", { ...quiet, gpus: [hot] })).toBe("GPU 0 98.0 GiB 140.0 GiB 37 % 61 °C 277 W");
    const { host: _, ...unmeasured } = quiet;
    expect(line("host", unmeasured)).toBe("host – – – – –");
  });
  test("a router shows its link's state and data connections", () => {
    expect(line("router1", quiet)).toBe("router1.example:7443 (192.0.2.17) linked 2");
  });
  test("uncommitted usage shows its records and the age of the oldest", () => {
    expect(line("usage", quiet)).toBe("usage not yet committed: 0 records");
    expect(line("usage", { ...quiet, outbox: { records: 1, oldestAgeSeconds: 0.4 } })).toBe(
      "usage not yet committed: 1 record, the oldest 0.4 s",
    );
    expect(line("usage", { ...quiet, outbox: { records: 7, oldestAgeSeconds: 754 } })).toContain("the oldest 12 min");
  });
});

describe("the machine", () => {
  const machine = {
    ...{ manufacturer: "Supermicro", model: "SYS-821GE", processor: "Intel Xeon 8480+", processorSockets: 2 },
    ...{ processorCores: 112, processorThreads: 224, operatingSystem: "Ubuntu 24.04", kernel: "6.8.0" },
    memoryModules: Array<{ sizeBytes: number; type: string }>(32).fill({ sizeBytes: 64 * gib, type: "DDR5" }),
    ...{ disks: [], networkInterfaces: [] },
    gpus: [{ busAddress: "0000:c3:00.0", vendor: "AMD", name: "Instinct MI300X", memoryTotalBytes: 192 * gib }],
  };
  const reading = {
    ...{ loadAverage1: 1.25, loadAverage5: 1, loadAverage15: 0, swapTotalBytes: 0, swapUsedBytes: 0 },
    ...{ diskReadBytesPerSecond: 2 ** 21, diskWrittenBytesPerSecond: 0, networkReceivedBytesPerSecond: 5 },
    fileSystems: [{ mount: "/models", holds: ["models"], sizeBytes: 100 * gib, availableBytes: 4 * gib }],
    temperatures: [{ part: "cpu", celsius: 61.4 }],
  };
  const known = { ...quiet, machine, reading };

  test("has a line for each known fact, and none for unknown ones", () => {
    expect(line("machine", known)).toBe("machine Supermicro SYS-821GE");
    expect(line("processor", known)).toBe("processor Intel Xeon 8480+, 2 sockets, 112 cores, 224 threads");
    expect(line("system", known)).toBe("system Ubuntu 24.04, kernel 6.8.0");
    expect(line("modules", known)).toBe("modules 32 × 64.0 GiB DDR5");
    expect(line("load", known)).toBe("load 1.3, 1.0, 0.0 (1, 5, 15 minutes)");
    expect(line("swap", known)).toBe("swap none");
    expect(line("disks", known)).toBe("disks 2.0 MiB/s read, 0.0 MiB/s written");
    expect(line("heat", known)).toBe("heat cpu 61 °C");
    expect([line("network", known), line("frequency", known)]).toEqual([undefined, undefined]);
    expect(formatStatus(quiet)).not.toMatch(/^(machine|load|FILE SYSTEM|GPU)/m);
  });
  test("has tables of its GPUs and file systems, and a nearly full file system is red", () => {
    expect(line("– ", known)).toBe("– 0000:c3:00.0 AMD Instinct MI300X – 192.0 GiB");
    expect(line("/models", known)).toBe("/models models 100.0 GiB 4.0 GiB –");
    const paint: NonNullable<TextOptions["paint"]> = (tone, text) => `<${tone}>${text}`;
    expect(formatStatus(known, { paint })).toMatch(/^<red>\/models/m);
    const roomy = { ...reading, fileSystems: [{ ...reading.fileSystems[0]!, availableBytes: 6 * gib }] };
    expect(formatStatus({ ...known, reading: roomy }, { paint })).toMatch(/^\/models/m);
    const noFiles = { ...reading.fileSystems[0]!, availableBytes: 50 * gib, inodes: 100, inodesFree: 4 };
    expect(formatStatus({ ...known, reading: { ...reading, fileSystems: [noFiles] } }, { paint })).toMatch(
      /^<red>\/models.* 4 %$/m,
    );
  });
  test("is no wider than the terminal, and hardware names cannot control the terminal", () => {
    const hostile = { ...known, machine: { ...machine, model: "x\r\ny\u001b[2J" } };
    const lines = formatStatus(hostile, { width: 40 }).split("\n");
    expect(lines.filter(({ length }) => length > 40)).toEqual([]);
    expect(lines.length).toBe(formatStatus(known, { width: 40 }).split("\n").length);
    expect(lines.join("")).not.toMatch(/\p{Cc}/u);
  });
});

test("the first line says why the node serves no requests", () => {
  expect(formatStatus(quiet).split("\n")[0]).toBe("node gpu-1 (1.0.0)");
  const routers = [{ address: "r:1", state: "leaving", dataSessions: 1 } as const];
  expect(formatStatus({ ...quiet, maintenance: true, admitting: false, routers }).split("\n")[0]).toBe(
    "node gpu-1 (1.0.0) · in maintenance · accepts no requests · no router",
  );
});

test("no line is wider than the terminal, however long the names are, and short names are not cut", () => {
  const long = "a-model-with-a-name-that-somebody-wanted-to-tell-everything-about-it-32b-instruct-fp8";
  const status: AgentStatus = {
    ...withSlot({ active: long, next: `${long}-2`, state: "draining-open", waiting: { [long]: 1, [`${long}-2`]: 2 } }),
    engines: [{ ...quiet.engines[0]!, model: long }],
    routers: [{ address: `${long}.example:7443`, state: "connecting", dataSessions: 0 }],
  };
  for (const width of [80, 120]) {
    const lines = formatStatus(status, { width }).split("\n");
    expect(lines.filter(({ length }) => length > width)).toEqual([]);
    expect(line("a     a-model", status, { width })).toMatch(/… asleep 812 2 d 7 h 2 1.9 GiB 52.3 GiB$/);
    expect(line("a     draining-open", status, { width })).toMatch(/… a-model.*… 3 12.3 s 2 h 5 min$/);
  }
  expect(formatStatus(status)).toContain(long);
  expect(line("a     general", quiet, { width: 80 })).toBe(line("a     general", quiet));
});

test("names, reasons and versions cannot add lines or control the terminal [E9]", () => {
  const hostile = "x\r\ngpu-2\u001b[2J\u009b1A\u2028\u202ey";
  const model = `m${hostile}`;
  const status: AgentStatus = {
    ...withSlot({
      active: model,
      next: model,
      state: "failed",
      failure: hostile,
      waiting: { [model]: 1 },
      sleepers: [model],
    }),
    ...{ node: hostile, version: hostile, routers: [{ address: hostile, state: "linked", dataSessions: 0 }] },
    engines: [{ ...quiet.engines[0]!, model }],
  };
  const plain = {
    ...withSlot({ failure: "x", state: "failed", waiting: { m: 1 }, sleepers: ["m"] }),
    engines: quiet.engines.slice(0, 1),
  };
  for (const width of [40, undefined]) {
    const text = formatStatus(status, width === undefined ? {} : { width });
    expect(text.split("\n").length).toBe(formatStatus(plain).split("\n").length);
    expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u);
  }
});

test("problems are coloured, but only with a painter", () => {
  const paint: NonNullable<TextOptions["paint"]> = (tone, text) => `<${tone}>${text}</${tone}>`;
  const failed = {
    ...withSlot({ state: "failed" }),
    routers: [{ address: "r:1", state: "connecting", dataSessions: 0, reason: "nothing listens there" } as const],
  };
  const text = formatStatus(failed, { paint });
  expect(text).toMatch(/^<bold>node gpu-1 \(1.0.0\)<\/bold> · <red>no router<\/red>$/m);
  expect(text).toMatch(/^<red>a +failed.*<\/red>$/m);
  expect(text).toMatch(/^<yellow>r:1 +connecting.*<\/yellow>\n<yellow> +why: nothing listens there<\/yellow>$/m);
  expect(formatStatus(failed)).not.toContain("<");
});
