/** Packages for another processor, from a local registry. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { archOf, fetchPackage } from "./processor.ts";

const folder = mkdtempSync(join(tmpdir(), "weiche-fetch-"));
const name = "native-code-for-another";
const version = "1.2.3";
let integrity: string;

/** A registry with one package, which has the postinstall script of the embedded PostgreSQL. */
const registry = createServer((request, response) => {
  const tarball = `http://${request.headers.host}/it.tgz`;
  const manifest = { name, version, dist: { tarball, integrity } };
  const packument = { name, "dist-tags": { latest: version }, versions: { [version]: manifest } };
  response.end(request.url === "/it.tgz" ? readFileSync(join(folder, "it.tgz")) : JSON.stringify(packument));
});

beforeAll(async () => {
  const content = join(folder, "package");
  mkdirSync(join(content, "scripts"), { recursive: true });
  writeFileSync(join(content, "package.json"), JSON.stringify({ name, version }));
  writeFileSync(join(content, "scripts/hydrate-symlinks.js"), 'require("fs").symlinkSync("package.json", "link");');
  spawnSync("tar", ["-C", folder, "-czf", join(folder, "it.tgz"), "package"]);
  const tarball = readFileSync(join(folder, "it.tgz"));
  integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  await new Promise<void>((listening) => registry.listen(0, "127.0.0.1", listening));
  const { port } = registry.address() as AddressInfo;
  vi.stubEnv("npm_config_registry", `http://127.0.0.1:${port}/`);
  vi.stubEnv("npm_config_cache", join(folder, "cache"));
});
afterAll(() => {
  vi.unstubAllEnvs();
  registry.close();
  rmSync(folder, { recursive: true });
});

test("a package that matches the lock file is unpacked with its links", async () => {
  await fetchPackage({ name, version, integrity }, join(folder, "right"));
  expect(readlinkSync(join(folder, "right/link"))).toBe("package.json");
  expect(JSON.parse(readFileSync(join(folder, "right/package.json"), "utf8"))).toEqual({ name, version });
});

test("a package that was replaced in the registry is refused, and none of it is unpacked or run [G7]", async () => {
  const pinned = `sha512-${"A".repeat(86)}==`;
  const fetched = fetchPackage({ name, version, integrity: pinned }, join(folder, "wrong"));
  await expect(fetched).rejects.toThrow(`the registry's ${name}@${version} differs from the pinned one`);
  expect(existsSync(join(folder, "wrong/package.json"))).toBe(false);
});

test("a processor without a release is refused by name", () => {
  expect(() => archOf("riscv64")).toThrow('no release is made for "riscv64": --arch is x64 or arm64');
});
