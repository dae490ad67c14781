import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { MachineReader } from "./machine-reader.ts";

let root: string;
let nowMs: number;

beforeEach(() => {
  root = temporaryDirectory();
  nowMs = 1_000;
});

/** Writes the files of a simulated kernel. */
function write(files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
}

function reader(): MachineReader {
  return new MachineReader({ kept: [], nowMs: () => nowMs, proc: join(root, "proc"), sys: join(root, "sys") });
}

const diskstats = (readSectors: number, writtenSectors: number) => `
   7       0 loop0 9 9 999 9 9 9 999 9 0 9 9
 259       0 nvme0n1 104884 14468 ${readSectors} 38759 174487 256835 ${writtenSectors} 242690 0 43296 303403
 259       1 nvme0n1p1 104884 14468 ${readSectors} 38759 174487 256835 ${writtenSectors} 242690 0 43296 303403
 253       0 dm-0 104884 14468 ${readSectors} 38759 174487 256835 ${writtenSectors} 242690 0 43296 303403
`;
const netdev = (received: number, sent: number) => `Inter-|   Receive                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 398907177  435433    0    0    0     0          0         0 398907177  435433    0    0    0     0       0          0
  eth0:${received}   74181    0    0    0     0          0         0  ${sent}   47800    0    0    0     0       0          0
 veth1: 777 1 0 0 0 0 0 0 777 1 0 0 0 0 0 0
`;

test("of a kernel without files is empty, without any 0", () => {
  expect(reader().read()).toEqual({ temperatures: [], fileSystems: [] });
});

test("contains load and swap as the kernel reports them, and 0 bytes for no swap", () => {
  write({
    "proc/loadavg": "10.16 12.55 11.46 3/281 4711\n",
    "proc/meminfo": "MemTotal:       24684092 kB\nSwapTotal:       8388604 kB\nSwapFree:        8388600 kB\n",
  });
  const read = { loadAverage1: 10.16, loadAverage5: 12.55, loadAverage15: 11.46 };
  expect(reader().read()).toMatchObject({ ...read, swapTotalBytes: 8_388_604 * 1024, swapUsedBytes: 4 * 1024 });
  write({ "proc/meminfo": "SwapTotal:             0 kB\nSwapFree:              0 kB\n" });
  expect(reader().read()).toMatchObject({ swapTotalBytes: 0, swapUsedBytes: 0 });
});

test("counts traffic of disks and interfaces once, and per second from the second reading on", () => {
  write({ "sys/block/nvme0n1/device/model": "", "sys/block/dm-0/size": "1", "sys/class/net/eth0/device/uevent": "" });
  write({ "proc/diskstats": diskstats(2_000, 4_000), "proc/net/dev": netdev(5_000, 700) });
  const reads = reader();
  const first = reads.read();
  expect(first).toMatchObject({ diskReadBytes: 1_024_000, diskWrittenBytes: 2_048_000 });
  expect(first).toMatchObject({ networkReceivedBytes: 5_000, networkSentBytes: 700 });
  expect(first.diskReadBytesPerSecond).toBeUndefined();
  write({ "proc/diskstats": diskstats(4_000, 4_000), "proc/net/dev": netdev(20_000, 1_000) });
  nowMs += 2_000;
  expect(reads.read()).toMatchObject({
    ...{ diskReadBytesPerSecond: 512_000, diskWrittenBytesPerSecond: 0 },
    ...{ networkReceivedBytesPerSecond: 7_500, networkSentBytesPerSecond: 150 },
  });
  write({ "proc/net/dev": netdev(10, 2_000) });
  nowMs += 1_000;
  const again = reads.read();
  expect(again.networkReceivedBytesPerSecond).toBeUndefined(); // The counter began anew.
  expect(again.networkSentBytesPerSecond).toBe(1_000);
});

test("in a container without hardware counts all interfaces except the loopback", () => {
  write({ "proc/net/dev": netdev(5_000, 700) });
  expect(reader().read()).toMatchObject({ networkReceivedBytes: 5_777, networkSentBytes: 1_477 });
});

test("contains the hottest sensor of each part, and no sensors of unknown parts", () => {
  write({
    ...{ "sys/class/hwmon/hwmon0/name": "coretemp\n", "sys/class/hwmon/hwmon0/temp1_input": "61000\n" },
    ...{ "sys/class/hwmon/hwmon0/temp2_input": "68500\n", "sys/class/hwmon/hwmon0/temp2_crit": "100000\n" },
    ...{ "sys/class/hwmon/hwmon1/name": "nvme\n", "sys/class/hwmon/hwmon1/temp1_input": "0\n" },
    ...{ "sys/class/hwmon/hwmon2/name": "weird\n", "sys/class/hwmon/hwmon2/temp1_input": "99000\n" },
    ...{ "sys/class/hwmon/hwmon3/name": "jc42\n", "sys/class/hwmon/hwmon3/temp1_input": "" },
    ...{ "sys/class/thermal/thermal_zone0/type": "acpitz\n", "sys/class/thermal/thermal_zone0/temp": "27800\n" },
  });
  expect(reader().read().temperatures).toEqual([
    { part: "cpu", celsius: 68.5 },
    { part: "disk", celsius: 0 },
    { part: "board", celsius: 27.8 },
  ]);
});

test("takes the processor's limit from the most limited core", () => {
  const policy = (core: number, limit: string, max: string) => ({
    [`sys/devices/system/cpu/cpufreq/policy${core}/scaling_max_freq`]: limit,
    [`sys/devices/system/cpu/cpufreq/policy${core}/cpuinfo_max_freq`]: max,
  });
  write({ ...policy(0, "3800000\n", "3800000\n"), ...policy(1, "2000000\n", "3800000\n"), ...policy(2, "", "1") });
  expect(reader().read()).toMatchObject({ cpuFrequencyLimitHertz: 2e9, cpuFrequencyMaxHertz: 3.8e9 });
});
