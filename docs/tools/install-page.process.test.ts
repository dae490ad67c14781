/** The install page's commands run in a separate root, and make the files that the units need. */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";

const root = join(import.meta.dirname, "../..");
const deploy = join(root, "deploy");
const page = readFileSync(join(root, "docs/install.md"), "utf8");
const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
const host = mkdtempSync(join(tmpdir(), "weiche-install-"));
afterAll(() => rmSync(host, { recursive: true }));

/** Returns the lines of a section's first block. */
function commandsOf(section: string): readonly string[] {
  const begin = page.indexOf(`\n## ${section}\n`);
  expect(begin).toBeGreaterThan(0);
  return /```sh\n(.*?)\n```/s.exec(page.slice(begin))![1]!.split("\n");
}
const roles = { router: commandsOf("A router"), node: commandsOf("A node"), engines: [] as readonly string[] };
const engineBlocks = page.slice(page.indexOf("\n## Engines as units")).matchAll(/```sh\n(.*?)\n```/gs);
roles.engines = [...engineBlocks]
  .map(([, block]) => block!)
  .find((block) => block.includes("systemctl"))!
  .split("\n");

/** Replacements for steps that cannot run here: packages, a clone (a copy of `deploy`), processes. */
const elsewhere = /^(apt-get|git clone|npx) /;

/** Returns the command for the host below `host`. */
function moved(command: string): string {
  return command
    .replace(/^ssh \S+ /, "")
    .replaceAll(/(?<=[\s:])\/(?=(opt|etc|root|var)\/)|^\/(?=opt\/)/g, `${host}/`)
    .replace("systemctl enable --now ", `systemctl --root=${host} enable `)
    .replace("systemctl link ", `systemctl --root=${host} link `)
    .replace("systemd-sysusers ", `systemd-sysusers --root=${host} --dry-run `)
    .replace(/^(systemctl .*?)\S*(\/opt\/weiche\/\S+)$/, "$1$2"); // takes paths below its root
}

function run(command: string): void {
  execFileSync("bash", ["-ec", moved(command)], {
    stdio: "pipe",
    env: { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` },
  });
}

beforeAll(() => {
  mkdirSync(join(host, "opt/weiche"), { recursive: true });
  mkdirSync(join(host, "root"));
  mkdirSync(join(host, "etc/systemd/system"), { recursive: true });
  mkdirSync(join(host, "etc/polkit-1/rules.d"), { recursive: true });
  cpSync(deploy, join(host, "opt/weiche/deploy"), { recursive: true });
  for (const name of ["node_modules", "node-agent", "router", "shared", "proto", "package.json"])
    symlinkSync(join(root, name), join(host, "opt/weiche", name));
});

describe.each(["router", "node"] as const)("the page's commands for a %s", (role) => {
  test("are at most ten, with one step each", () => {
    expect(roles[role].length).toBeLessThanOrEqual(10);
    expect(roles[role].filter((command) => /&&|;|\\$/.test(command))).toEqual([]);
    for (const command of roles[role]) execFileSync("bash", ["-nc", command]);
  });

  test("install the programs that they use", () => {
    const packages = roles[role].find((command) => command.startsWith("apt-get install"))!;
    for (const program of ["git", "npm"]) expect(packages).toContain(program);
  });
});

test(
  "run in order, they make the files that units and examples name, with keys for root only",
  needs("systemd-analyze"),
  () => {
    for (const command of roles.router.filter((each) => !elsewhere.test(each))) run(command);
    run("/opt/weiche/node_modules/.bin/weiche certificates node gpu-1 --dir /root/weiche-ca"); // as the page says between its blocks
    for (const command of [...roles.node, ...roles.engines].filter(
      (each) => !elsewhere.test(each) && !each.endsWith(" status"),
    ))
      run(command);

    const units = readdirSync(join(deploy, "systemd")).filter((file) => file.endsWith(".service"));
    const texts = [
      ...units.map((unit) => join(deploy, "systemd", unit)),
      join(deploy, "router.yaml"),
      join(deploy, "agent.yaml"),
    ].map((file) => readFileSync(file, "utf8").replaceAll(/^\s*#.*$/gm, ""));
    const named = new Set(texts.flatMap((text) => text.match(/\/etc\/weiche\/[\w.-]+(?![\w./-])/g) ?? []));
    expect([...named].filter((file) => !existsSync(join(host, file)))).toEqual([]);
    expect(named.size).toBeGreaterThanOrEqual(7);
    for (const key of ["node.key", "router.key"]) expect(statSync(join(host, "etc/weiche", key)).mode & 0o077).toBe(0);
    expect(existsSync(join(host, "etc/weiche/ca.key"))).toBe(false);

    const enabled = readdirSync(join(host, "etc/systemd/system/multi-user.target.wants")).toSorted();
    expect(enabled).toEqual(["weiche-node-agent.service", "weiche-router.service"]);
    expect(readdirSync(join(host, "etc/systemd/system"))).toContain("weiche-engine@.service");
  },
);

test("every unit, path and user of Weiche on the pages exists", () => {
  const pages = `${page}\n${runbook}`;
  const units = new Set(
    pages.match(/weiche-[a-z-]+@?(?=\.service)|(?<=-u |start |stop |reload |restart )weiche-(?:node-agent|router)/g),
  );
  expect([...units].filter((unit) => !existsSync(join(deploy, "systemd", `${unit}.service`)))).toEqual([]);
  expect(units.size).toBe(4);
  const sysusers = readFileSync(join(deploy, "systemd/weiche.sysusers"), "utf8");
  const users = [...pages.matchAll(/(?:chown root:|pkill -u )([a-z-]+)/g)].map(([, user]) => user!);
  expect(users.filter((user) => !sysusers.includes(`u ${user} `))).toEqual([]);
  const credentials = pages.match(/\/run\/credentials/g);
  expect(credentials).not.toBeNull();
  const paths = new Set(
    [...pages.matchAll(/\/(?:opt|usr\/lib)\/weiche\/(deploy\/[\w./@-]+)/g)].map(([, path]) => path!),
  );
  expect([...paths].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  expect(paths.size).toBeGreaterThanOrEqual(8);
  for (const command of ["weiche", "weiche-agent"])
    expect(existsSync(join(root, "node_modules/.bin", command))).toBe(true);
});
