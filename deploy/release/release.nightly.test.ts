/** A release is reproducible, and its packages work on a bare Debian 12 and 13 from installation to purge. */
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askOnce, configure, installCertificates, openAccount } from "./configured-host.ts";
import { DebianHost, needsHost } from "./debian-host.ts";
import { architectures } from "./debian-packages.ts";
import { arches, root } from "./lock-file.ts";
import { archOf } from "./processor.ts";
import { buildRelease, currentRelease } from "./release.ts";

const minutes = 60_000;
const folder = mkdtempSync(join(tmpdir(), "weiche-release-"));
const release = currentRelease();
const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
let files: readonly string[];

beforeAll(async () => {
  files = await buildRelease(join(folder, "one"), release, arches);
}, 9 * minutes);
afterAll(() => rmSync(folder, { recursive: true }));

test(
  "two builds of a release for both processors have the same bytes [G7]",
  async () => {
    await buildRelease(join(folder, "elsewhere/two"), release, arches);
    const sums = (out: string) => readFileSync(join(folder, out, "SHA256SUMS"), "utf8");
    expect(sums("elsewhere/two")).toBe(sums("one"));
    expect(sums("one").trimEnd().split("\n")).toHaveLength(10);
  },
  9 * minutes,
);

test.each(Object.values(architectures))("a GPU host downloads at most 60 MB, %s", (architecture) => {
  const sizes = ["runtime", "node-agent"].map(
    (name) => statSync(join(folder, "one", `weiche-${name}_${release.version}_${architecture}.deb`)).size,
  );
  expect(sizes[0]! + sizes[1]!).toBeLessThan(60e6);
});

test.each(["bookworm", "trixie"] as const)(
  "on a bare Debian %s, the packages serve under systemd, reload certificates, restore a backup, and are removed without the data [G4 G6]",
  { timeout: 9 * minutes, ...needsHost() },
  async (suite) => {
    const packages = files.filter((file) => file.endsWith(`_${architectures[archOf(process.arch)]}.deb`));
    await using host = await DebianHost.make(join(folder, suite), suite);
    await host.install(host.bring("packages", packages));
    await host.boot();
    const { version } = release;
    for (const command of ["weiche", "weiche-agent", "weiche-router", "weiche-node-agent"])
      expect(await host.run(`${command} --version`)).toBe(`${version}\n`);
    const running = "systemctl list-units --plain --no-legend 'weiche*'";
    expect(await host.run(running)).toBe(""); // nothing starts before its configuration

    await configure(host);
    await host.run("weiche-agent check-config /etc/weiche/agent.yaml");
    await host.run("systemctl enable --now weiche-router weiche-node-agent");
    expect(await host.run("systemctl is-active weiche-router weiche-node-agent")).toBe("active\nactive\n");
    const { key } = await openAccount(host);
    const answer = await askOnce(host, key);
    expect(answer).toMatchObject({ model: "tiny-chat", usage: { completion_tokens: 20 } });
    expect(JSON.parse(await host.run("weiche nodes --json"))).toMatchObject([{ name: "gpu-1", agentVersion: version }]);

    await renewCertificates(host);
    await backUpByCredential(host);
    await restoreBackup(host);
    await askOnce(host, key);

    // An update restarts running services and keeps the operator's changes.
    const names = packages.map((file) => `/packages/${basename(file)}`).join(" ");
    await host.run(`dpkg -i ${names}`);
    await expect
      .poll(() => host.run("systemctl is-active weiche-router weiche-node-agent"), { timeout: 2 * minutes })
      .toBe("active\nactive\n");
    expect(host.read("etc/weiche/agent.yaml")).toContain("tiny-chat");
    await updateWithOtherExample(
      host,
      names.split(" ").find((file) => file.includes("weiche-router_"))!,
    );

    await host.run("apt-get remove -y weiche-router weiche-node-agent weiche-embedded-engine");
    expect(await host.run(running)).toBe("");
    await host.run("test -e /var/lib/weiche/router/database/cluster -a -e /etc/weiche/router.yaml");
    const said = await host.run("apt-get purge -y weiche-router weiche-node-agent");
    expect(said).toContain("rm -r /var/lib/weiche/router");
    expect(said).toContain("rm -r /var/lib/weiche/agent");
    expect(said).toContain("weiche-router leaves /etc/weiche/router.key");
    await host.run("test -e /var/lib/weiche/router/database/cluster -a ! -e /etc/weiche/router.yaml");
  },
);

/** Renews the certificates as runbook.md describes, with both kinds of copies. */
async function renewCertificates(host: DebianHost): Promise<void> {
  await renewOnce(host);
  // Only the program can read its copy, and even the program cannot replace it.
  const modes = "stat -c '%U %a %n' /run/weiche/* /run/weiche/*/*";
  expect((await host.run(modes)).trimEnd().split("\n")).toEqual([
    "root 755 /run/weiche/agent",
    "root 755 /run/weiche/router",
    "weiche-agent 400 /run/weiche/agent/node.key",
    "weiche-agent 400 /run/weiche/agent/node.pem",
    "weiche-router 400 /run/weiche/router/router.key",
  ]);

  await host.run("cp -p /etc/weiche/router.yaml /etc/weiche/agent.yaml /root");
  const [, dropIn] = /^```ini\n(\[Service\]\nLoadCredential=api\.key.*?)^```$/ms.exec(runbook)!;
  await host.run("mkdir -p /etc/systemd/system/weiche-router.service.d");
  host.write("etc/systemd/system/weiche-router.service.d/override.conf", dropIn!);
  await host.run("install -m 600 /root/weiche-ca/node-gpu-1.key /etc/weiche/api.key");
  for (const [file, part, unit] of [
    ["router", "router", "weiche-router"],
    ["agent", "agent", "weiche-node-agent"],
  ] as const)
    await host.run(`sed -i s:/run/weiche/${part}/:/run/credentials/${unit}.service/: /etc/weiche/${file}.yaml`);
  await host.run("systemctl daemon-reload && systemctl restart weiche-router weiche-node-agent");
  expect(host.read("etc/weiche/router.yaml")).toMatch(
    /^ *key: \/run\/credentials\/weiche-router\.service\/router\.key$/m,
  );
  await renewOnce(host);
  const ownKey = "/run/credentials/weiche-router.service/api.key";
  const nodeKey = "/root/weiche-ca/node-gpu-1.key"; // renewed in the meantime
  await expect(host.run(`cmp ${ownKey} ${nodeKey}`)).rejects.toThrow("differ");
  await host.run(`cp ${nodeKey} /etc/weiche/api.key && systemctl reload weiche-router && cmp ${ownKey} ${nodeKey}`);
  await expect(host.run(`touch ${ownKey}`)).rejects.toThrow("Read-only");
  await host.run("rm -r /etc/systemd/system/weiche-router.service.d /etc/weiche/api.key");
  await host.run("cp -p /root/router.yaml /root/agent.yaml /etc/weiche");
  await host.run("systemctl daemon-reload && systemctl restart weiche-router weiche-node-agent");
}

/** Checks that both programs read the new files and keep running. */
async function renewOnce(host: DebianHost): Promise<void> {
  const pids = () => host.run("systemctl show -P MainPID weiche-router weiche-node-agent");
  const timesRead = async (unit: string) =>
    (await host.run(`journalctl -u ${unit} -o cat`)).split("certificate read again").length - 1;
  const running = await pids();
  const before = await shownCertificate(host);
  const readBefore = await timesRead("weiche-node-agent");
  await host.run("weiche certificates renew router-router1.example node-gpu-1 --dir /root/weiche-ca");
  await installCertificates(host);
  await host.run("systemctl reload weiche-router weiche-node-agent");
  const wanted = fingerprintOf(host.read("etc/weiche/router-router1.example.pem"));
  expect(wanted).not.toBe(before);
  await expect.poll(() => shownCertificate(host), { timeout: minutes, interval: 500 }).toBe(wanted);
  await expect
    .poll(() => timesRead("weiche-node-agent"), { timeout: minutes, interval: 500 })
    .toBeGreaterThan(readBefore);
  expect(await timesRead("weiche-router")).toBeGreaterThan(0);
  expect(await pids()).toBe(running);
}

/** Uses a database password that only root can read, as a credential of both units by install.md. */
async function backUpByCredential(host: DebianHost): Promise<void> {
  const folder = "/var/lib/weiche/router/database"; // the router's database, by a URL
  const url = `postgres://weiche@localhost:5432/weiche?host=${encodeURIComponent(folder)}`;
  const passwordFile = "/run/credentials/weiche-router.service/database-password";
  host.write("etc/weiche/other.yaml", JSON.stringify({ catalogue: "catalogue.yaml", database: { url, passwordFile } }));
  await host.run(`install -m 600 ${folder}/password /etc/weiche/database-password`);
  const dropIns = "/etc/systemd/system/weiche-backup.service.d";
  const editUnit = async (...lines: readonly string[]) => {
    await host.run(`mkdir -p ${dropIns}`);
    host.write(`${dropIns}/override.conf`, ["[Service]", ...lines, ""].join("\n"));
    await host.run("systemctl daemon-reload");
  };
  const otherConfig = "Environment=WEICHE_CONFIG=/etc/weiche/other.yaml";
  await editUnit(otherConfig);
  await expect(host.run("systemctl start weiche-backup")).rejects.toThrow("failed");
  await expect
    .poll(() => host.run("journalctl -u weiche-backup -o cat"))
    .toContain("give LoadCredential=database-password:FILE to this unit");
  await editUnit(otherConfig, "LoadCredential=database-password:/etc/weiche/database-password");
  await host.run("systemctl start weiche-backup");
  expect(await host.run("ls /var/lib/weiche-backups")).toMatch(/^weiche-\S+\.backup\n$/);
  await host.run(`rm -r ${dropIns} /var/lib/weiche-backups/* /etc/weiche/other.yaml && systemctl daemon-reload`);
}

/** Updates without a terminal by runbook.md, after both the example and the operator's file have changed. */
async function updateWithOtherExample(host: DebianHost, file: string): Promise<void> {
  const repack = "dpkg-deb -R FILE /root/tree && echo '# more' >>/root/tree/etc/weiche/catalogue.yaml";
  await host.run(`${repack} && dpkg-deb -Znone -b /root/tree FILE`.replaceAll("FILE", file));
  await expect(host.run(`dpkg -i ${file} </dev/null`)).rejects.toThrow("end of file on stdin at conffile prompt");
  await host.run("dpkg --configure -a --force-confold");
  expect(host.read("etc/weiche/catalogue.yaml")).toContain("tiny-chat");
  expect(host.read("etc/weiche/catalogue.yaml.dpkg-dist")).toContain("# more");
}

/** Restores the backup unit's file into an empty data directory by runbook.md. */
async function restoreBackup(host: DebianHost): Promise<void> {
  await host.run("systemctl start weiche-backup");
  const written = (await host.run("ls /var/lib/weiche-backups")).trim();
  expect(written).toMatch(/^weiche-\d{8}T\d{6}Z\.backup$/);
  const [, restoring] = /^(systemctl stop weiche-router\nmv .*?^systemctl start weiche-router)$/ms.exec(runbook)!;
  await host.run(`set -e\n${restoring!.replace("< FILE", `< /var/lib/weiche-backups/${written}`)}`);
}

/** Returns the SHA-256 of the certificate that the router presents to nodes. */
async function shownCertificate(host: DebianHost): Promise<string> {
  host.write(
    "root/shown.mjs",
    `
    import { connect } from "node:tls";
    const socket = connect({ port: 7443, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      console.log(socket.getPeerX509Certificate().fingerprint256);
      process.exit();
    });`,
  );
  return (await host.run("/usr/lib/weiche/node/bin/node /root/shown.mjs")).trim();
}

function fingerprintOf(pem: string): string {
  return new X509Certificate(pem).fingerprint256;
}
