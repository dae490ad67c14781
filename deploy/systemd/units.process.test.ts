/** Checks the units with systemd's own tool, and the agent's rights over engine units. Needs `systemd-analyze`. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";

const root = join(import.meta.dirname, "../..");
const units = readdirSync(import.meta.dirname).filter((file) => file.endsWith(".service"));
const text = (file: string) => readFileSync(join(import.meta.dirname, file), "utf8");
let installed: string;

/** The units with this checkout in place of /opt/weiche, so that systemd finds their programs. */
beforeAll(() => {
  installed = mkdtempSync(join(tmpdir(), "weiche-units-"));
  mkdirSync(join(installed, "engines"));
  writeFileSync(join(installed, "engines", "a-small-24b"), "#!/bin/sh\n", { mode: 0o755 });
  for (const unit of units) {
    const here = text(unit)
      .replaceAll("/opt/weiche/node_modules/node/bin/node", process.execPath)
      .replaceAll("/opt/weiche", root)
      .replaceAll("/etc/weiche/engines", join(installed, "engines"));
    writeFileSync(join(installed, unit.replace("@.", "@a-small-24b.")), here);
  }
});
afterAll(() => rmSync(installed, { recursive: true }));

function analyze(...args: readonly string[]): { readonly status: number | null; readonly output: string } {
  const { status, error, stdout, stderr } = spawnSync("systemd-analyze", args, { cwd: installed, encoding: "utf8" });
  if (error) {
    throw new Error(
      `cannot run systemd-analyze (${(error as NodeJS.ErrnoException).code}); as root: apt-get update && apt-get install -y --no-install-recommends systemd`,
    );
  }
  return { status, output: stdout + stderr };
}

test.each(["weiche-router", "weiche-backup", "weiche-node-agent", "weiche-engine@a-small-24b"])(
  "systemd accepts %s",
  needs("systemd-analyze"),
  (unit) => {
    const { status, output } = analyze("verify", "--man=no", `./${unit}.service`);
    const aboutOurs = output.split("\n").filter((line) => line.includes("weiche"));
    expect([status, aboutOurs]).toEqual([0, []]);
  },
);

test.each([
  ["weiche-router", 15],
  ["weiche-backup", 15],
  ["weiche-node-agent", 20],
  ["weiche-engine@a-small-24b", 20],
])("%s is exposed to at most %i tenths [G2]", needs("systemd-analyze"), (unit, threshold) => {
  const args = ["security", "--offline=yes", "--no-pager", `--threshold=${threshold}`, `./${unit}.service`];
  const { status, output } = analyze(...args);
  expect([status, output.split("\n").findLast((line) => line.includes("Overall"))]).toEqual([0, expect.any(String)]);
});

describe("a unit", () => {
  test("never forbids writable and executable memory, because Node.js and engines compile code", () => {
    expect(units.filter((unit) => /^MemoryDenyWriteExecute=/m.test(text(unit)))).toEqual([]);
  });
  const nvidia = ["char-nvidia*", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"];
  const gpus = ["DevicePolicy=closed", ...nvidia.map((device) => `DeviceAllow=${device} rw`)];
  const speaks = ["Type=notify", "NotifyAccess=all", "WatchdogSec=30", "WatchdogSignal=SIGKILL", "Restart=always"];
  /** Without a key of root, which comes last, nothing is copied. */
  const copyOf = (part: string, ...files: readonly string[]) =>
    [
      `+/bin/sh -c 'test ! -e /etc/weiche/${files.at(-1)} ||`,
      `exec install -D -m 0400 -o weiche-${part} -g weiche-${part} -t /run/weiche/${part}`,
      ...files.map((file) => `/etc/weiche/${file}`),
    ].join(" ") + "'";
  const credentialsOf = (part: string, ...files: readonly string[]) =>
    [
      "-+/usr/bin/nsenter --target 1 --mount /usr/bin/unshare --mount /bin/sh -c",
      `'test -e /etc/weiche/${files.at(-1)} || exit 0;`,
      "mount -o remount,bind,rw /run/credentials/%n;",
      `exec install -m 0400 -o weiche-${part} -g weiche-${part} -t /run/credentials/%n`,
      ...files.map((file) => `/etc/weiche/${file}`),
    ].join(" ") + "'";
  test.each<[what: string, unit: string, lines: readonly string[]]>([
    ["of the agent has readiness notification and a watchdog", "weiche-node-agent", speaks],
    ["of the router has readiness notification and a watchdog", "weiche-router", speaks],
    ["of the agent can access only NVIDIA's devices", "weiche-node-agent", gpus],
    ["of an engine can access only NVIDIA's devices", "weiche-engine@", gpus],
    ["of the router can access no devices", "weiche-router", ["PrivateDevices=yes", "DevicePolicy=closed"]],
    [
      "of the agent gets copies of root's certificate and key at each start and reload [G6]",
      "weiche-node-agent",
      [
        `ExecStartPre=${copyOf("agent", "node.pem", "node.key")}`,
        `ExecReload=${copyOf("agent", "node.pem", "node.key")}`,
        `ExecReload=${credentialsOf("agent", "node.pem", "node.key")}`,
        "ExecStopPost=+/usr/bin/rm -rf /run/weiche/agent",
        "LoadCredential=node.pem:/etc/weiche/node.pem",
        "LoadCredential=node.key:/etc/weiche/node.key",
        "SetCredential=node.pem:none",
        "SetCredential=node.key:none",
      ],
    ],
    [
      "of the router gets a copy of root's key at each start and reload, and fails to reload a wrong catalogue [G6]",
      "weiche-router",
      [
        `ExecStartPre=${copyOf("router", "router.key")}`,
        `ExecReload=${copyOf("router", "router.key")}`,
        `ExecReload=${credentialsOf("router", "router.key")}`,
        "ExecReload=/opt/weiche/node_modules/node/bin/node router/bin/weiche.js catalogue reload",
        "ExecStopPost=+/usr/bin/rm -rf /run/weiche/router",
        "LoadCredential=router.key:/etc/weiche/router.key",
        "SetCredential=router.key:none",
      ],
    ],
    ["of the agent hides its state from other users", "weiche-node-agent", ["StateDirectoryMode=0700", "UMask=0077"]],
    ["of the router hides its state from other users", "weiche-router", ["StateDirectoryMode=0700", "UMask=0077"]],
    ["of the router lets the router stop its database last", "weiche-router", ["KillMode=mixed", "OOMPolicy=continue"]],
    [
      "of an engine can communicate only with this host",
      "weiche-engine@",
      ["IPAddressDeny=any", "IPAddressAllow=localhost"],
    ],
    ["of an engine ends with all its processes", "weiche-engine@", ["KillMode=mixed", "TimeoutStopSec=60"]],
  ])("%s", (_, unit, lines) => {
    const keyOf = (line: string) => line.split("=")[0]!;
    const keys = new Set(lines.map(keyOf));
    const said = text(`${unit}.service`)
      .split("\n")
      .filter((line) => keys.has(keyOf(line)));
    expect(said.toSorted()).toEqual(lines.toSorted());
  });
  test.each(["weiche-router", "weiche-node-agent"])(
    "of %s is killed only after its running answers have ended",
    (unit) => {
      const shutdownSeconds = 600 + 10; // the defaults: shutdownSeconds, and a router's shutdownAcceptSeconds
      const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(text(`${unit}.service`))!;
      expect(Number(seconds)).toBeGreaterThan(shutdownSeconds);
    },
  );
  test("of an engine has no access to the node's key [G2]", () => {
    expect(text("weiche-engine@.service")).not.toMatch(/^(LoadCredential|User=weiche-agent)/m);
  });
  test("of the agent never stops engines", () => {
    expect(text("weiche-node-agent.service")).toMatch(/^KillMode=process$/m);
    expect(text("weiche-node-agent.service")).toMatch(/^OOMPolicy=continue$/m);
    expect(text("weiche-node-agent.service")).not.toMatch(/^(PrivateUsers|PrivateIPC|RemoveIPC)=/m);
  });
  test("of an engine is restarted by its slot, not by systemd", () => {
    expect(text("weiche-engine@.service")).toMatch(/^Restart=no$/m);
    expect(text("weiche-engine@.service")).toMatch(/^EnvironmentFile=\/var\/lib\/weiche\/agent\/units\/%i\.env$/m);
  });
  test("refers only to existing programs and documents", () => {
    const named = units.flatMap((unit) => [
      ...[...text(unit).matchAll(/\/opt\/weiche\/([\w./-]+)/g)].map(([, file]) => file!),
      ...[...text(unit).matchAll(/^ExecStart=\S+ (\S+\.ts)$/gm)].map(([, file]) => file!),
    ]);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });
  test("runs as a user from sysusers", () => {
    const users = units.map((unit) => /^User=(.+)$/m.exec(text(unit))?.[1]);
    expect(users.filter((user) => !new RegExp(`^u ${user} `, "m").test(text("weiche.sysusers")))).toEqual([]);
  });
});

describe("polkit", () => {
  const asked = (user: string, unit: string, verb: string, id = "org.freedesktop.systemd1.manage-units"): string => {
    const rules: ((action: object, subject: object) => string)[] = [];
    const Result = { YES: "yes", NO: "no", NOT_HANDLED: "not handled" };
    runInNewContext(text("50-weiche-engines.rules"), {
      polkit: { Result, addRule: (rule: (typeof rules)[number]) => rules.push(rule) },
    });
    const details: Record<string, string> = { unit, verb };
    return rules[0]!({ id, lookup: (name: string) => details[name] }, { user });
  };
  test.each(["start", "stop", "kill"])("lets the agent %s an engine", (verb) => {
    expect(asked("weiche-agent", "weiche-engine@a-general-3.8-27b.service", verb)).toBe("yes");
    expect(asked("weiche-agent", "weiche-engine@a-qwen\\x2f3.service", verb)).toBe("yes");
  });
  test.each([
    ["weiche-router.service", "stop"],
    ["ssh.service", "start"],
    ["weiche-engine@.service", "start"],
    ["weiche-engine@a.service.d/../../x.service", "start"],
    ["x-weiche-engine@a.service", "start"],
    ["weiche-engine@a.service", "set-property"],
    ["weiche-engine@a.service", "restart"],
  ])("does not let the agent do more: %s %s [G2]", (unit, verb) => {
    expect(asked("weiche-agent", unit, verb)).toBe("no");
  });
  test("decides nothing about other units and actions", () => {
    expect(asked("weiche-engine", "weiche-engine@a.service", "start")).toBe("not handled");
    expect(asked("weiche-agent", "weiche-engine@a.service", "start", "org.freedesktop.login1.reboot")).toBe(
      "not handled",
    );
  });
});

test("router and agent give large buffers back to the system", () => {
  const lines = ["weiche-router.service", "weiche-node-agent.service"].map(
    (unit) => /^Environment=MALLOC_.*$/m.exec(text(unit))?.[0],
  );
  expect(lines).toEqual(Array.from({ length: 2 }, () => "Environment=MALLOC_MMAP_THRESHOLD_=131072"));
});
