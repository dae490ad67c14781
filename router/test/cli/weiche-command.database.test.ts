/** The `weiche` command: its exit codes, its output, and the admin socket. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { openAdminSocket } from "../../src/surface/admin/admin-socket.ts";
import { temporaryFolder } from "../db/database-fixture.ts";
import { startAdmin } from "./admin-rig.ts";

const admin = await forThisFile(startAdmin());

test("weiche lists nodes and models, and refuses to reload a catalogue with mistakes", async () => {
  expect(await admin.json("nodes")).toMatchObject([{ name: "gpu-1", state: "live" }]);
  expect(await admin.json("models")).toMatchObject([{ id: "tiny-chat" }, { id: "tiny-embed" }]);
  expect(await admin.json("catalogue", "reload")).toEqual({ models: 2 });
  admin.mistakes = "catalogue.yaml:3: unknown key";
  expect(await admin.weiche(["catalogue", "reload"])).toMatchObject({ code: 1, error: `weiche: ${admin.mistakes}\n` });
});

test("without --json, weiche prints tables and fields, and no text can control the terminal [E9]", async () => {
  const { out } = await admin.weiche(["account", "create", "--name", "Zwei", "--owner-email", "zwei@example.com"]);
  expect(out).toMatch(/^name\s+Zwei$/m);
  expect((await admin.weiche(["account", "list"])).out).toMatch(
    /^ID\s+NAME\s+PACKAGE\s+STATE\s+PERIOD END\s+OWNER USER ID\s+BLOCKED AT\n─+/,
  );
  expect((await admin.weiche(["nodes"])).out).toMatch(/^gpu-1 +live +a +active +tiny-chat/m);
  const forged = await admin.weiche(["account", "create", "--name", "\u001b[2Jx", "--owner-email", "x@example.com"]);
  expect(forged).toMatchObject({ code: 1, error: "weiche: --name is not well-formed\n" });
});

test("renew prints what to do with each certificate on its host, and with --json only the list", async () => {
  using folder = temporaryFolder();
  const dir = join(folder.path, "ca");
  for (const what of [["ca"], ["router", "router1.example"], ["node", "gpu-1"]])
    expect(await admin.weiche(["certificates", ...what, "--dir", dir])).toMatchObject({ code: 0 });
  const { out } = await admin.weiche(["certificates", "renew", "--within", "400", "--dir", dir]);
  expect(out.trimEnd().split("\n").slice(-2)).toEqual([
    "Copy node-gpu-1.pem as node.pem and node-gpu-1.key as node.key to /etc/weiche on its host, then run there: systemctl reload weiche-node-agent (restarts nothing)",
    "Copy router-router1.example.pem and, as router.key, router-router1.example.key to /etc/weiche on its host, then run there: systemctl reload weiche-router (restarts nothing)",
  ]);
  expect(await admin.json("certificates", "renew", "node-gpu-1", "--dir", dir)).toMatchObject([{ file: "node-gpu-1" }]);
});

describe("the exit code is", () => {
  const someone = "00000000-0000-7000-8000-000000000000";
  test.each([
    [1, ["account", "show", someone], `there is no account ${someone}`],
    [1, ["account", "show", "../nodes"], "there is no account ../nodes"],
    [
      1,
      ["account", "create", "--name", "A", "--owner-email", "a@example.com", "--package", "Gold"],
      'there is no package "Gold"',
    ],
    [
      1,
      ["user", "update", "a user", "--model", "tiny-caht"],
      'there is no model "tiny-caht"; did you mean "tiny-chat"?',
    ],
    [1, ["usage", "--account", "an account", "--from", "2026-02-30"], "there is no day 2026-02-30"],
    [
      1,
      ["usage", "--account", "an account", "--from", "2026-02-02", "--to", "2026-02-01"],
      "2026-02-02 is after 2026-02-01",
    ],
    [2, [], "Usage"],
    [2, ["acount", "list"], "unknown command"],
    [2, ["account", "create"], "required option"],
    [2, ["key", "create", "--user", someone, "--name", "k", "--expires", "tomorrow"], "An instant looks like"],
    [2, ["user", "update", someone, "--credit-limit", "1.2345"], "at most three decimal places"],
    [2, ["user", "create", "--account", someone, "--email", "a@b.c", "--role", "king"], "Allowed choices"],
    [2, ["key", "update", someone], "no change given"],
    [1, ["user", "show", someone], `there is no user ${someone}`],
    [1, ["key", "show", someone], `there is no key ${someone}`],
    [1, ["key", "list", "--account", someone], `there is no account ${someone}`],
    [1, ["credits", "show", someone], `there is no account ${someone}`],
    [1, ["audit", "--account", someone], `there is no account ${someone}`],
    [1, ["audit", "--account", someone, "--limit", "1001"], "limit is not well-formed"],
    [2, ["audit", "--account", someone, "--since", "2026-02-30"], "A time looks like"],
    [2, ["requests", "--outcome", "stalled"], "--outcome stalled is missing --here"],
    [2, ["requests", "--here", "--outcome", "gone"], "Allowed choices are answered, refused"],
    [2, ["key", "list"], "--user or --account is missing"],
    [0, ["key", "--help"], ""],
  ] as const)("%i: %j", async (code, args, message) => {
    const [account] = await admin.accounts.list();
    const ids: Record<string, string> = { "an account": account!.id, "a user": account!.ownerUserId! };
    const outcome = await admin.weiche(args.map((arg) => ids[arg] ?? arg));
    expect(outcome.code).toBe(code);
    expect(outcome.error).toContain(message);
    expect(outcome.error).not.toContain("    at ");
  });

  test("3 if no router runs or it was killed", async () => {
    using empty = temporaryFolder();
    expect(await admin.weiche(["nodes"], { WEICHE_DATA_DIR: empty.path })).toMatchObject({
      code: 3,
      error: expect.stringContaining("no router found") as string,
    });
    expect(await admin.weiche(["nodes", "--socket", join(empty.path, "x.sock")])).toMatchObject({ code: 3 });
    expect(await admin.weiche(["nodes", "--data-dir", empty.path])).toMatchObject({ code: 3 });
  });

  test("1 if the router fails, with the reason in the router's log", async () => {
    using folder = temporaryFolder();
    const socket = join(folder.path, "admin.sock");
    const known: unknown[] = [];
    const listNodes = () => {
      throw new Error("canary");
    };
    await using _socket = await openAdminSocket(socket, {
      ...{ database: admin.database, handlers: { ...admin.handlers, listNodes } },
      events: { adminFailed: (error) => void known.push(error) },
    });
    const outcome = await admin.weiche(["nodes", "--socket", socket]);
    expect(outcome).toMatchObject({ code: 1, error: "weiche: the router failed; its log says why\n" });
    expect(known).toMatchObject([{ message: "canary" }]);
  });
});

test("weiche runs with any Node.js on the path", async () => {
  const nodes = process.env["PATH"]!.split(":").map((folder) => join(folder, "node"));
  // Several folders of the path lead to the same program.
  for (const node of new Set([process.execPath, ...nodes.filter(existsSync)].map((path) => realpathSync(path)))) {
    expect(await admin.program(["models", "--json"], { node })).toMatchObject({ code: 0, error: "" });
    expect(await admin.program(["key", "list"], { node })).toMatchObject({ code: 2 });
  }
});

test("without --data-dir, weiche looks in the project's data directory, whatever the working directory", async () => {
  const { code, error } = await admin.program(["nodes"], { cwd: "/tmp", env: { WEICHE_DATA_DIR: undefined } });
  const root = join(import.meta.dirname, "../../..");
  const reached = existsSync(join(root, "data/router/admin.sock"));
  expect(reached || (code === 3 && error.includes(join(root, "data/router/admin.sock")))).toBe(true);
});

test("only its user can open the admin socket, it replaces a dead one, and its path has a maximum length", async () => {
  const socket = join(admin.dataDir, "router/admin.sock");
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  using folder = temporaryFolder();
  const long = join(folder.path, "x".repeat(120), "admin.sock");
  const opening = openAdminSocket(long, { ...admin, events: { adminFailed() {} } });
  await expect(opening).rejects.toThrow(StartError);
  await expect(opening).rejects.toThrow("107 bytes");
});
