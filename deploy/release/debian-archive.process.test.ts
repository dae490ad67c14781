/** An archive as `npm run release -- --sign` makes it, read by a real apt in a root of its own. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { writeArchive } from "./debian-archive.ts";
import { architectures, controlOf, debianPackages } from "./debian-packages.ts";
import { archOf } from "./processor.ts";

const arch = archOf(process.arch);
const architecture = architectures[arch];
const folder = mkdtempSync(join(tmpdir(), "weiche-archive-"));
const archive = join(folder, "apt");
const home = join(folder, "gnupg");
const ifRun = needs("apt-get", "gpg");
const before = process.env["GNUPGHOME"];

beforeAll(() => {
  if (ifRun.skip) return;
  mkdirSync(home, { mode: 0o700 });
  process.env["GNUPGHOME"] = home;
  const key = ["--quick-generate-key", "archive@example.com", "ed25519", "sign", "never"];
  const made = spawnSync("gpg", ["--batch", "--passphrase", "", ...key], { encoding: "utf8" });
  if (made.status !== 0) throw new Error(`gpg made no key: ${made.stderr}`);
  const packages = debianPackages.map((one) => {
    const release = { version: "1.2.3+git1", made: new Date(0), maintainer: "Ada <ada@example.com>" };
    // apt reads the index. The packages' own contents do not matter here.
    const file = join(folder, `${one.name}_1.2.3+git1_${architecture}.deb`);
    writeFileSync(file, one.name);
    return { file, architecture, control: controlOf(one, release, arch, 1) };
  });
  writeArchive(archive, packages, { key: "archive@example.com", made: new Date("2026-01-02T03:04:05Z") });
});
afterAll(() => {
  if (before === undefined) delete process.env["GNUPGHOME"];
  else process.env["GNUPGHOME"] = before;
  spawnSync("gpgconf", ["--homedir", home, "--kill", "all"]);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** Runs apt with this archive as its only source. */
function apt(...args: readonly string[]) {
  const root = join(folder, "root");
  for (const each of ["lists/partial", "cache/archives/partial", "etc/preferences.d"])
    mkdirSync(join(root, each), { recursive: true });
  writeFileSync(join(root, "status"), "");
  const key = join(archive, "weiche-archive-keyring.gpg");
  writeFileSync(join(root, "etc/sources.list"), `deb [signed-by=${key}] file:${archive} stable main\n`);
  const options = Object.entries({
    "Dir::State": root,
    "Dir::State::status": join(root, "status"),
    "Dir::State::lists": join(root, "lists"),
    "Dir::Cache": join(root, "cache"),
    "Dir::Etc": join(root, "etc"),
    "APT::Architecture": architecture,
    "APT::Sandbox::User": "root",
  }).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const { status, stdout, stderr } = spawnSync(args[0]!, [...options, ...args.slice(1)], { encoding: "utf8" });
  return { status, out: stdout + stderr };
}

test("apt trusts the signed archive and offers its packages", ifRun, () => {
  expect(apt("apt-get", "update")).toMatchObject({ status: 0, out: expect.not.stringMatching(/^[WE]:/m) });
  for (const { name } of debianPackages)
    expect(apt("apt-cache", "policy", name).out).toMatch(/Candidate: 1\.2\.3\+git1/);
  const { out } = apt("apt-cache", "show", "weiche-router");
  expect(out).toMatch(/^Filename: pool\/weiche-router_1\.2\.3\+git1_/m);
});

test("apt refuses an archive whose index was changed after the signature", ifRun, () => {
  const index = join(archive, `dists/stable/main/binary-${architecture}/Packages`);
  writeFileSync(index, readFileSync(index, "utf8").replaceAll("weiche-router", "weiche-rooter"));
  rmSync(join(folder, "root"), { recursive: true, force: true });
  const { status, out } = apt("apt-get", "update");
  expect([status, out]).toEqual([100, expect.stringMatching(/Hash Sum mismatch|unexpected size/)]);
});

test("a key that gpg does not have is named", ifRun, () => {
  expect(() => writeArchive(join(folder, "none"), [], { key: "nobody@example.com", made: new Date(0) })).toThrow(
    /cannot sign the archive with the key nobody@example\.com: /,
  );
});
