/** The release itself: the same bytes twice; and its packages on a bare Debian 12, from the installation to the purge. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parse } from "yaml";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DebianHost, lackOfHost } from "./debian-host.ts";
import { root } from "./lock-file.ts";
import { buildRelease, currentRelease } from "./release.ts";

const minutes = 60_000;
const folder = mkdtempSync(join(tmpdir(), "weiche-release-"));
const release = currentRelease();
let files: readonly string[];

beforeAll(async () => {
  files = await buildRelease(join(folder, "one"), release);
}, 9 * minutes);
afterAll(() => rmSync(folder, { recursive: true }));

test(
  "a release that is built twice has the same bytes",
  async () => {
    await buildRelease(join(folder, "elsewhere/two"), release);
    const sums = (out: string) => readFileSync(join(folder, out, "SHA256SUMS"), "utf8");
    expect(sums("elsewhere/two")).toBe(sums("one"));
    expect(sums("one").trimEnd().split("\n")).toHaveLength(5);
  },
  9 * minutes,
);

const lack = lackOfHost();
test.skipIf(lack !== undefined)(
  `the packages on a bare Debian 12 serve an answer under systemd, and go without the data${lack ? ` (did not run: ${lack})` : ""}`,
  async () => {
    const packages = files.filter((file) => file.endsWith(".deb"));
    await using host = await DebianHost.install(join(folder, "debian"), packages);
    await host.boot();
    const { version } = release;
    for (const command of ["weiche", "weiche-agent", "weiche-router", "weiche-node-agent"])
      expect(await host.run(`${command} --version`)).toBe(`${version}\n`);
    const running = "systemctl list-units --plain --no-legend 'weiche*'";
    expect(await host.run(running)).toBe(""); // nothing starts before it is configured

    await configure(host);
    await host.run("weiche-agent check-config /etc/weiche/agent.yaml");
    await host.run("systemctl enable --now weiche-router weiche-node-agent");
    expect(await host.run("systemctl is-active weiche-router weiche-node-agent")).toBe("active\nactive\n");
    const answer = await askOnce(host);
    expect(answer).toMatchObject({ model: "tiny-chat", usage: { completion_tokens: 20 } });
    expect(JSON.parse(await host.run("weiche nodes --json"))).toMatchObject([{ name: "gpu-1", agentVersion: version }]);

    // An update: what runs is started anew, and what the operator has changed stays.
    const names = packages.map((file) => `/packages/${basename(file)}`).join(" ");
    await host.run(`dpkg -i ${names}`);
    await expect
      .poll(() => host.run("systemctl is-active weiche-router weiche-node-agent"), { timeout: 2 * minutes })
      .toBe("active\nactive\n");
    expect(host.read("etc/weiche/agent.yaml")).toContain("tiny-chat");

    await host.run("apt-get remove -y weiche-router weiche-node-agent weiche-embedded-engine");
    expect(await host.run(running)).toBe("");
    await host.run("test -e /var/lib/weiche/router/database/cluster -a -e /etc/weiche/router.yaml");
    const said = await host.run("apt-get purge -y weiche-router weiche-node-agent");
    expect(said).toContain("rm -r /var/lib/weiche/router");
    expect(said).toContain("rm -r /var/lib/weiche/agent");
    expect(said).toContain("weiche-router leaves /etc/weiche/router.key");
    await host.run("test -e /var/lib/weiche/router/database/cluster -a ! -e /etc/weiche/router.yaml");
  },
  9 * minutes,
);

/** As INSTALL.md says, with the tiny model of the embedded engine. */
async function configure(host: DebianHost): Promise<void> {
  await host.run("echo 127.0.0.1 localhost router1.example >>/etc/hosts");
  for (const what of ["ca", "router router1.example", "node gpu-1"])
    await host.run(`weiche certificates ${what} --dir /root/weiche-ca`);
  const ca = "/root/weiche-ca";
  await host.run(`install -m 644 -t /etc/weiche ${ca}/ca.pem ${ca}/router-router1.example.pem`);
  await host.run(`install -m 600 ${ca}/router-router1.example.key /etc/weiche/router.key`);
  await host.run(`install -m 600 ${ca}/node-gpu-1.key /etc/weiche/node.key`);
  await host.run(`install -m 644 ${ca}/node-gpu-1.pem /etc/weiche/node.pem`);
  const { models } = parse(readFileSync(join(root, "deploy/demo/catalogue.yaml"), "utf8")) as { models: object[] };
  host.write("etc/weiche/catalogue.yaml", JSON.stringify({ models }));
  const credentials = "/run/credentials/weiche-node-agent.service";
  const model = "/usr/lib/weiche/embedded-engine/models/weiche-tiny.gguf";
  const command = ["weiche-embedded-engine", "--model", model, "--alias", "tiny-chat", "--port", "{port}"];
  const agent = {
    node: "gpu-1",
    routers: ["router1.example:7443"],
    tls: { cert: `${credentials}/node.pem`, key: `${credentials}/node.key`, ca: "/etc/weiche/ca.pem" },
    slots: [{ name: "a", engines: [{ model: "tiny-chat", dialect: "openai", maxConcurrent: 4, command }] }],
  };
  host.write("etc/weiche/agent.yaml", JSON.stringify(agent));
}

/** A new account's first request. The router may not have the node yet: it says so with 503. */
async function askOnce(host: DebianHost): Promise<unknown> {
  const account = await host.run(
    "weiche account create --name Example --owner-email owner@example.com --package Business --json",
  );
  const { ownerUserId } = JSON.parse(account) as { ownerUserId: string };
  const { key } = JSON.parse(await host.run(`weiche key create --user ${ownerUserId} --name first --json`)) as {
    key: string;
  };
  const body = { model: "tiny-chat", max_tokens: 20, messages: [{ role: "user", content: "Who are you?" }] };
  host.write(
    "root/ask.mjs",
    `
    const headers = { authorization: "Bearer ${key}", "content-type": "application/json" };
    const answer = await fetch("http://127.0.0.1:8080/v1/chat/completions", { method: "POST", headers, body: ${JSON.stringify(JSON.stringify(body))} });
    console.log(JSON.stringify({ status: answer.status, body: await answer.json() }));`,
  );
  let last: { status: number; body: unknown } = { status: 0, body: undefined };
  await expect
    .poll(
      async () => {
        last = JSON.parse(await host.run("/usr/lib/weiche/node/bin/node /root/ask.mjs")) as typeof last;
        return last.status;
      },
      { timeout: 2 * minutes },
    )
    .toBe(200);
  return last.body;
}
