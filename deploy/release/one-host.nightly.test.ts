/** The commands of docs/one-host.md, run on a bare Debian with systemd, serve a model without any key. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { DebianHost, needsHost } from "./debian-host.ts";
import { root } from "./lock-file.ts";
import { buildRelease, currentRelease } from "./release.ts";

const minutes = 60_000;
const folder = mkdtempSync(join(tmpdir(), "weiche-one-host-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const page = readFileSync(join(root, "docs/one-host.md"), "utf8");

/** Returns the lines of a section's first block. */
function commandsOf(section: string): readonly string[] {
  return /```sh\n(.*?)\n```/s.exec(page.slice(page.indexOf(`\n## ${section}\n`)))![1]!.split("\n");
}

test.each(["bookworm", "trixie"] as const)(
  "on a bare Debian %s, the page for one host serves within a minute of the packages, and survives a reload [G7]",
  { timeout: 9 * minutes, ...needsHost() },
  async (suite) => {
    const files = await buildRelease(join(folder, "out"), currentRelease());
    await using host = await DebianHost.make(join(folder, suite), suite);
    await host.install(["curl"]);
    host.bring(
      "packages",
      files.filter((file) => file.endsWith(".deb")),
    );
    const [install, ...commands] = commandsOf("Install");
    await host.run(`apt-get update && cd /packages && ${install} </dev/null`);
    await host.boot();
    const beganMs = performance.now();
    for (const command of commands) await host.run(command);
    const said = (await host.run(commandsOf("Ask").join("\n"))).split("\n").findLast((line) => line.startsWith("{"))!;
    expect(JSON.parse(said)).toMatchObject({
      model: "my-model",
      usage: { completion_tokens: expect.any(Number) as number },
    });
    expect(performance.now() - beganMs).toBeLessThan(1 * minutes);
    await host.run("systemctl reload weiche-router weiche-node-agent");
    expect(await host.run("systemctl is-active weiche-router weiche-node-agent")).toBe("active\nactive\n");
  },
);
