/** What apt does to a host whose packages are of different versions. Simulated by apt on a list of packages. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { architectures, controlOf, debianPackages } from "./debian-packages.ts";
import { archOf } from "./processor.ts";
import { currentRelease } from "./release.ts";

const arch = archOf(process.arch);
const host = mkdtempSync(join(tmpdir(), "weiche-apt-"));
afterAll(() => rmSync(host, { recursive: true }));

const debianVersions = { libc6: "2.36", "libstdc++6": "12.2", "libgcc-s1": "12.2", libatomic1: "12.2", systemd: "252" };
const versions = ["0.1.0", "0.2.0"] as const;
const release = (version: string) => ({ version, made: new Date(0), maintainer: "Ada <ada@example.com>" });

const fileOf = (name: string, version: string) => join(host, `${name}_${version}.deb`);

/** Makes packages without files. apt decides by their control files alone. */
beforeAll(() => {
  for (const folder of ["lists/partial", "cache/archives/partial"]) mkdirSync(join(host, folder), { recursive: true });
  for (const version of versions)
    for (const one of debianPackages) {
      const folder = join(host, version, one.name);
      mkdirSync(join(folder, "DEBIAN"), { recursive: true });
      writeFileSync(join(folder, "DEBIAN/control"), controlOf(one, release(version), arch, 1));
      spawnSync("dpkg-deb", ["--build", folder, fileOf(one.name, version)]);
    }
});

const state = (control: string) => `${control.trimEnd()}\nStatus: install ok installed\n`;

/** Returns what apt would install and remove on a host that has all packages of `from`. */
function simulate(from: string, names: readonly string[], to: string): readonly string[] {
  const debian = Object.entries(debianVersions).map(([name, version]) =>
    state(`Package: ${name}\nVersion: ${version}\nArchitecture: ${architectures[arch]}\nDescription: x`),
  );
  const ours = debianPackages.map((one) => state(controlOf(one, release(from), arch, 1)));
  writeFileSync(join(host, "status"), [...debian, ...ours].join("\n"));
  const options = Object.entries({
    "Dir::State": host,
    "Dir::State::status": join(host, "status"),
    "Dir::State::lists": join(host, "lists"),
    "Dir::Cache": join(host, "cache"),
    "Dir::Etc": join(host, "etc"),
    "APT::Architecture": architectures[arch],
  }).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  const files = names.map((name) => fileOf(name, to));
  const args = [...options, "install", "-y", "-s", "--allow-downgrades", ...files];
  const { stdout, stderr } = spawnSync("apt-get", args, { encoding: "utf8" });
  const lines = stdout.match(/^(Inst|Remv) \S+/gm) ?? [];
  return lines.length > 0 ? lines.toSorted() : [stdout + stderr];
}

test("a commit without a tag has a version of its own, later than the release before it and earlier than the next", () => {
  const { version } = currentRelease();
  expect(version).toMatch(/^\d+\.\d+\.\d+\+git20\d{10}\.[0-9a-f]{8}$/);
  const [base] = version.split("+");
  const isOlder = (a: string, b: string) => spawnSync("dpkg", ["--compare-versions", a, "lt", b]).status === 0;
  expect([isOlder(base!, version), isOlder(version, `${base}.1`)]).toEqual([true, true]);
});

test.each([
  ["an update", "0.1.0", "0.2.0"],
  ["a rollback", "0.2.0", "0.1.0"],
])("%s of some packages of a host removes none of the others", needs("apt-get"), (_what, from, to) => {
  for (const part of ["weiche-router", "weiche-node-agent", "weiche-embedded-engine"]) {
    const names = ["weiche-runtime", part];
    expect(simulate(from, names, to)).toEqual(names.map((name) => `Inst ${name}`).toSorted());
  }
  expect(simulate(from, ["weiche-runtime"], to)).toEqual(["Inst weiche-runtime"]);
});
