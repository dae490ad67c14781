import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readServiceUnit } from "./service-unit.ts";

let folders: readonly string[];
beforeEach(() => {
  const host = mkdtempSync(join(tmpdir(), "weiche-unit-"));
  folders = ["etc", "usr"].map((name) => join(host, name));
  for (const folder of folders) mkdirSync(join(folder, "a.service.d"), { recursive: true });
});
afterEach(() => rmSync(join(folders[0]!, ".."), { recursive: true }));

function write(folder: number, file: string, ...lines: readonly string[]): void {
  writeFileSync(join(folders[folder]!, file), ["[Service]", ...lines, ""].join("\n"));
}
const read = () => readServiceUnit("a.service", folders);

test("a host without the unit has none, and the units that Weiche brings hand over root's keys", () => {
  expect(read()).toBeUndefined();
  const [router, agent] = ["weiche-router", "weiche-node-agent"].map((name) => readServiceUnit(`${name}.service`));
  expect(router).toMatchObject({ user: "weiche-router", makesMore: false, bindsLowPorts: false });
  expect(router!.environment.get("WEICHE_CONFIG")).toBe("/etc/weiche/router.yaml");
  expect([...router!.sources]).toEqual([
    ["/run/weiche/router/router.key", "/etc/weiche/router.key"],
    ["/run/credentials/weiche-router.service/router.key", "/etc/weiche/router.key"],
  ]);
  expect(agent!.sources.get("/run/weiche/agent/node.pem")).toBe("/etc/weiche/node.pem");
  expect(agent!.sources.get("/run/weiche/agent/node.key")).toBe("/etc/weiche/node.key");
});

test("drop-ins add to the unit by their names' order, and an empty value removes what came before", () => {
  write(1, "a.service", "User=one", "LoadCredential=old:/etc/old", "Environment=A=1 B=2=3");
  write(1, "a.service.d/20.conf", "User=three");
  write(0, "a.service.d/10.conf", "User=two", "LoadCredential=", "LoadCredential=new:/etc/new");
  const unit = read()!;
  expect(unit.user).toBe("three");
  expect([...unit.sources]).toEqual([["/run/credentials/a.service/new", "/etc/new"]]);
  expect([...unit.environment]).toEqual([
    ["A", "1"],
    ["B", "2=3"],
  ]);
  write(0, "a.service.d/20.conf", "# hides the other file of this name");
  expect(read()!.user).toBe("two");
  write(0, "a.service", "User=four");
  expect(read()!.user).toBe("two");
});

test("copies are recognised in every form of the command, also in a shell's text", () => {
  const install = "/usr/bin/install -D -m 0400 -o u -g u -t /run/weiche/a";
  write(1, "a.service", `ExecStartPre=+${install} /etc/x.pem \\\n  /etc/x.key`);
  expect([...read()!.sources.values()]).toEqual(["/etc/x.pem", "/etc/x.key"]);
  write(1, "a.service", `ExecStartPre=+/bin/sh -c 'test ! -e /etc/x.key || exec ${install} /etc/x.key'`);
  expect(read()).toMatchObject({ sources: new Map([["/run/weiche/a/x.key", "/etc/x.key"]]), makesMore: false });
});

test.each(["ExecStartPre=/opt/fetch-key", "SetCredential=x.key:text", "ImportCredential=x*"])(
  "a unit with %s may make files that are not recognised",
  (line) => {
    write(1, "a.service", line);
    expect(read()).toMatchObject({ makesMore: true });
  },
);

test("a default of a credential makes no further file", () => {
  write(1, "a.service", "LoadCredential=x.key:/etc/x.key", "SetCredential=x.key:none");
  expect(read()).toMatchObject({ makesMore: false });
});

test("folders that the unit hides are named with the setting", () => {
  write(1, "a.service", "ProtectHome=yes", "PrivateTmp=yes");
  const files = ["/root/x", "/home/u/x", "/tmp/x", "/etc/x", "/rooted/x"];
  expect(files.map((file) => read()!.hiddenBy(file))).toEqual([
    ...["ProtectHome", "ProtectHome", "PrivateTmp"],
    ...[undefined, undefined],
  ]);
});

test("low ports need the capability, and users of the host", () => {
  const capability = "AmbientCapabilities=CAP_NET_BIND_SERVICE";
  const bounding = "CapabilityBoundingSet=CAP_NET_BIND_SERVICE";
  write(1, "a.service", capability, "CapabilityBoundingSet=", "PrivateUsers=no");
  expect(read()!.bindsLowPorts).toBe(false);
  write(1, "a.service", capability, bounding, "PrivateUsers=yes");
  expect(read()!.bindsLowPorts).toBe(false);
  write(0, "a.service.d/ports.conf", "PrivateUsers=no");
  expect(read()!.bindsLowPorts).toBe(true);
});
