/** `check-config` checks the files that a unit gives to its program, for the unit's user. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { judgeAgentFile } from "@weiche/node-agent/src/status/config-verdict.ts";
import { firstOpenPort } from "@weiche/shared/http/listen.ts";
import { readServiceUnit } from "@weiche/shared/files/service-unit.ts";
import { notRun } from "@weiche/shared/testing/needs.ts";
import { makeAuthority, makeCertificate } from "../../src/certificates/certificate-folder.ts";
import { checkRouterConfig } from "../../src/surface/cli/offline/config-check.ts";

const dayMs = 86_400_000;
const demo = join(import.meta.dirname, "../../../deploy/demo/catalogue.yaml");
let folder: string;
let ca: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "weiche-unit-check-"));
  ca = join(folder, "ca");
  mkdirSync(join(folder, "units"));
  const making = { folder: ca, nowMs: Date.now() };
  makeAuthority(making);
  makeCertificate(making, "router", ["router"]);
  makeCertificate(making, "node", ["gpu-1"]);
  writeFileSync(join(folder, "catalogue.yaml"), readFileSync(demo));
  write("router-router.pem");
});
afterEach(() => rmSync(folder, { recursive: true }));

const file = () => join(folder, "router.yaml");
const copy = "/run/weiche/router/router.key";
const credential = "/run/credentials/weiche-router.service/router.key";

/** Writes a router.yaml with these files of the nodes' listener. */
function write(cert: string, key = copy): void {
  const tls = { cert: join(ca, cert), key, ca: join(ca, "ca.pem") };
  writeFileSync(file(), JSON.stringify({ catalogue: "catalogue.yaml", nodes: { tls } }));
}

/** Returns a unit that reads this folder's router.yaml, and hands over its key `source`. */
function unitWith(source: string, ...lines: readonly string[]) {
  const install = `/usr/bin/install -D -t /run/weiche/router ${join(ca, source)}`.replace(source, "router.key");
  rmSync(join(ca, "router.key"), { force: true });
  if (source !== "") writeFileSync(join(ca, "router.key"), readFileSync(join(ca, source)), { mode: 0o600 });
  const text = [
    `Environment=NODE_ENV=production WEICHE_CONFIG=${file()} WEICHE_AGENT_CONFIG=${join(folder, "agent.yaml")}`,
    `ExecStartPre=+${install}`,
    `LoadCredential=router.key:${join(ca, "router.key")}`,
    ...lines,
  ];
  for (const name of ["weiche-router.service", "weiche-node-agent.service"])
    writeFileSync(join(folder, "units", name), `${["[Service]", ...text].join("\n")}\n`);
  return readServiceUnit("weiche-router.service", [join(folder, "units")])!;
}

const said = async (unit: ReturnType<typeof unitWith>) => {
  const { mistakes, warnings } = await checkRouterConfig(file(), folder, unit);
  const texts = (found: typeof mistakes) => found.map(({ message }) => message.replaceAll(`${folder}/`, ""));
  return { mistakes: texts(mistakes), warnings: texts(warnings) };
};

test.each([copy, credential])("accepts %s if root's file for it fits, whatever lies below /run", async (key) => {
  write("router-router.pem", key);
  expect(await said(unitWith("router-router.key"))).toEqual({ mistakes: [], warnings: [] });
});

test.each([copy, credential])("refuses %s if root's file for it is another key, or is not there", async (key) => {
  write("router-router.pem", key);
  expect((await said(unitWith("node-gpu-1.key"))).mistakes).toEqual([
    "ca/router.key is not the key of ca/router-router.pem",
  ]);
  const unit = unitWith("router-router.key");
  rmSync(join(ca, "router.key"));
  expect((await said(unit)).mistakes).toEqual([`ca/router.key is not there; weiche-router.service makes ${key} of it`]);
});

test("an agent's certificate that the unit will copy is checked, too", async () => {
  const making = { folder: ca, nowMs: Date.now() - 11 * dayMs, days: 10 };
  makeCertificate(making, "node", ["gpu-1"], { replace: true });
  const unit = unitWith("node-gpu-1.key", `ExecStartPre=+/usr/bin/install -t /run/weiche/agent ${ca}/node-gpu-1.pem`);
  const tls = { cert: "/run/weiche/agent/node-gpu-1.pem", key: copy, ca: join(ca, "ca.pem") };
  const slots = [{ name: "a", engines: [{ model: "m", dialect: "openai", launcher: "external", url: "http://x" }] }];
  const text = JSON.stringify({ node: "gpu-1", tls, slots });
  const { mistakes } = await judgeAgentFile(join(folder, "agent.yaml"), text, unit);
  expect(mistakes.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(new RegExp(`^${ca}/node-gpu-1\\.pem expired at `)),
  );
});

test("a listener on a port that the unit may not use is a mistake, unless a drop-in allows it", async () => {
  const open = firstOpenPort();
  const listen = { api: "0.0.0.0:443", portal: "127.0.0.1:8081" };
  writeFileSync(file(), JSON.stringify({ catalogue: "catalogue.yaml", listen }));
  const text = `listen.api 0.0.0.0:443: weiche-router.service may not use ports below ${open}: choose another one, or allow it (docs/runbook.md#a-port-below-1024)`;
  const user = `User=${userInfo().username}`;
  expect((await said(unitWith("router-router.key", user))).mistakes).toEqual(open > 443 ? [text] : []);
  const page = readFileSync(join(import.meta.dirname, "../../../docs/runbook.md"), "utf8");
  const [, dropIn] = /^```ini\n\[Service\]\n(AmbientCapabilities.*?)\n```$/ms.exec(page)!;
  const allowed = unitWith("router-router.key", user, "PrivateUsers=yes", "AmbientCapabilities=", dropIn!);
  expect((await said(allowed)).mistakes).toEqual([]);
});

test("a file below /run that no line of the unit makes is a mistake", async () => {
  const absent = "/run/credentials/weiche-router.service/api.key";
  write("router-router.pem", absent);
  expect((await said(unitWith("router-router.key"))).mistakes).toEqual([
    `${absent} is not there, and no line of weiche-router.service makes it`,
  ]);
  const { mistakes, warnings } = await said(unitWith("router-router.key", "ImportCredential=api.*"));
  expect([mistakes, warnings[0]]).toEqual([[], expect.stringContaining("as while the service does not run")]);
  writeFileSync(file(), JSON.stringify({ catalogue: "catalogue.yaml", ops: { tokenFile: absent } }));
  const text = `cannot read ${absent}: it does not exist (ENOENT). Check the path`;
  expect(await said(unitWith("router-router.key"))).toEqual({ mistakes: [text], warnings: [] });
  expect(await said(unitWith("router-router.key", "ImportCredential=api.*"))).toEqual({
    mistakes: [],
    warnings: [text],
  });
});

test("a credential of the operator's own is checked, with a warning that a reload may not renew it", async () => {
  const own = "/run/credentials/weiche-router.service/api.key";
  write("router-router.pem", own);
  expect(await said(unitWith("router-router.key", `LoadCredential=api.key:${join(ca, "router-router.key")}`))).toEqual({
    mistakes: [],
    warnings: [expect.stringContaining(`${own} is renewed by a reload if the unit has an ExecReload line for it`)],
  });
});

test("a password that the unit hands over is read from root's file", async () => {
  const passwordFile = "/run/credentials/weiche-router.service/password";
  const smtp = { url: "smtps://u@mail.example", from: "a@b.example", passwordFile };
  writeFileSync(file(), JSON.stringify({ catalogue: "catalogue.yaml", smtp }));
  const unit = unitWith("router-router.key", `LoadCredential=password:${join(folder, "password")}`);
  writeFileSync(join(folder, "password"), "secret\n", { mode: 0o600 });
  expect(await said(unit)).toEqual({ mistakes: [], warnings: [] });
  writeFileSync(join(folder, "password"), "");
  expect((await said(unit)).mistakes).toEqual(["password must hold a password in one line"]);
});

test("a key of root that others may read is a warning, because the program reads a copy", async () => {
  const unit = unitWith("router-router.key");
  chmodSync(join(ca, "router.key"), 0o644);
  expect(await said(unit)).toEqual({
    mistakes: [],
    warnings: [expect.stringContaining("ca/router.key holds a private key, but its mode 0644")],
  });
});

const asRoot = process.geteuid?.() === 0 ? {} : notRun("it needs root, to check as another user");

test("files that the unit's user cannot read are mistakes with the command that helps", asRoot, async () => {
  const unit = () => unitWith("router-router.key", "User=nobody");
  const named = (at: string) => `nobody cannot read ${at}, `;
  expect((await said(unit())).mistakes).toContain(
    `${named("catalogue.yaml")}because the folder ${folder} has mode 0700: move it, such as to /etc/weiche`,
  );
  for (const each of [folder, ca]) chmodSync(each, 0o755);
  expect((await said(unit())).mistakes).toEqual([]);
  for (const each of ["router.yaml", "catalogue.yaml"]) {
    chmodSync(join(folder, each), 0o640);
    const refusal = `${named(each)}mode 0640: chgrp nobody ${each} && chmod g+r ${each}`;
    expect((await said(unit())).mistakes).toEqual([refusal]);
    chownSync(join(folder, each), 0, 65_534);
    expect((await said(unit())).mistakes).toEqual([]);
  }
  write("router-router.pem", join(ca, "router-router.key"));
  expect((await said(unit())).mistakes).toEqual([
    expect.stringContaining(`${named("ca/router-router.key")}mode 0600: chgrp nobody`),
  ]);
  expect((await said(unitWith("router-router.key", "User=nobody", "PrivateTmp=yes"))).mistakes).toContainEqual(
    expect.stringMatching(/^weiche-router\.service hides .*router\.yaml from the program \(PrivateTmp=yes\): move it/),
  );
});

test("another file than the unit's is not checked for the unit's user", asRoot, async () => {
  const unit = { ...unitWith("router-router.key", "User=nobody"), environment: new Map() };
  expect((await said(unit)).mistakes).toEqual([]);
});
