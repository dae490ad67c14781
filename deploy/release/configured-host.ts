/** Sets up a host with packages by install.md: router, node, and the embedded engine's tiny model. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { expect } from "vitest";
import type { DebianHost } from "./debian-host.ts";
import { root } from "./lock-file.ts";

const minutes = 60_000;

/** Writes certificates, `agent.yaml` and the catalogue. Starts nothing. */
export async function configure(host: DebianHost): Promise<void> {
  await host.run("echo 127.0.0.1 localhost router1.example >>/etc/hosts");
  for (const what of ["ca", "router router1.example", "node gpu-1"])
    await host.run(`weiche certificates ${what} --dir /root/weiche-ca`);
  await installCertificates(host);
  const { models } = parse(readFileSync(join(root, "deploy/demo/catalogue.yaml"), "utf8")) as { models: object[] };
  host.write("etc/weiche/catalogue.yaml", JSON.stringify({ models }));
  const model = "/usr/lib/weiche/embedded-engine/models/weiche-tiny.gguf";
  const command = ["weiche-embedded-engine", "--model", model, "--alias", "tiny-chat", "--port", "{port}"];
  const agent = {
    node: "gpu-1",
    routers: ["router1.example:7443"],
    tls: { cert: "/run/weiche/agent/node.pem", key: "/run/weiche/agent/node.key", ca: "/etc/weiche/ca.pem" },
    slots: [{ name: "a", engines: [{ model: "tiny-chat", dialect: "openai", maxConcurrent: 4, command }] }],
  };
  host.write("etc/weiche/agent.yaml", JSON.stringify(agent));
}

/** Copies certificates from the authority's folder to the places in which router and agent expect them. */
export async function installCertificates(host: DebianHost): Promise<void> {
  const ca = "/root/weiche-ca";
  await host.run(`install -m 644 -t /etc/weiche ${ca}/ca.pem ${ca}/router-router1.example.pem`);
  await host.run(`install -m 600 ${ca}/router-router1.example.key /etc/weiche/router.key`);
  await host.run(`install -m 600 ${ca}/node-gpu-1.key /etc/weiche/node.key`);
  await host.run(`install -m 644 ${ca}/node-gpu-1.pem /etc/weiche/node.pem`);
}

/** Makes a new account with a key. */
export async function openAccount(host: DebianHost): Promise<{ readonly id: string; readonly key: string }> {
  const account = await host.run(
    "weiche account create --name Example --owner-email owner@example.com --package Business --yes --json",
  );
  const { id, ownerUserId } = JSON.parse(account) as { id: string; ownerUserId: string };
  const made = await host.run(`weiche key create --user ${ownerUserId} --name first --json`);
  return { id, key: (JSON.parse(made) as { key: string }).key };
}

/** Sends a request, again while the router answers 503 because it has no node yet. Returns the answer's body. */
export async function askOnce(host: DebianHost, key: string): Promise<unknown> {
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
