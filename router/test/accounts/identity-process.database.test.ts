/** The router as a program: people sign in over HTTP, get mail and reset passwords. No output then contains their secrets. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generateSync } from "otplib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runWeiche } from "../cli/run-weiche.ts";
import { temporaryFolder, until } from "../db/database-fixture.ts";
import { startSmtpServer, type SmtpServer } from "./smtp-server.ts";

const root = join(import.meta.dirname, "../../..");
const marker = "qx7canary"; // addresses are lower-cased
/** Makes a different secret for each field, each with the marker inside. */
let canaries = 0;
const canary = (length = 30) => `pass ${marker} ${++canaries}`.padEnd(length, "z");
const asToken = () => `${marker}${++canaries}`.padEnd(43, "z");

const open = new AsyncDisposableStack();
/** Secrets that were shown once, only to their person. */
const handedOut: string[] = [];
/** Every answer, without the secrets that it had to show. */
const answers: string[] = [];
let smtp: SmtpServer;
let folder: string;
let program: ChildProcess;
let log = "";
let portal: string;
let ops: string;

beforeAll(async () => {
  smtp = open.use(await startSmtpServer());
  folder = open.use(temporaryFolder()).path;
  chmodSync(folder, 0o711); // so that the database's user can enter it when this runs as root
  const smtpUrl = `smtp://weiche:${encodeURIComponent(canary())}@127.0.0.1:${smtp.port}`;
  const file = join(folder, "router.yaml");
  writeFileSync(
    file,
    `catalogue: ${join(root, "deploy/catalogue.yaml")}
dataDir: data
listen: { api: "127.0.0.1:0", portal: "127.0.0.1:0", console: off, nodes: "127.0.0.1:0", data: "127.0.0.1:0", ops: "127.0.0.1:0" }
limits: { perIpPerSecond: 0 }
portal: { registration: open }
smtp: { url: "${smtpUrl}", from: "Weiche <portal@example.com>" }
shutdownSeconds: 1
shutdownAcceptSeconds: 0
`,
    { mode: 0o600 },
  );
  program = spawn(process.execPath, [join(root, "router/src/main.ts")], {
    env: { ...process.env, WEICHE_CONFIG: file, WEICHE_LOG_LEVEL: "trace" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  open.defer(stop);
  for (const stream of [program.stdout!, program.stderr!])
    stream.setEncoding("utf8").on("data", (text: string) => void (log += text));
  await until("the router listens", 60_000, () => log.includes('"router listening"'));
  const line = log.split("\n").find((text) => text.includes('"router listening"'))!;
  const { listen } = JSON.parse(line) as { listen: Record<string, string> };
  portal = `http://${listen["portal"]}`;
  ops = `http://${listen["ops"]}`;
}, 90_000);
afterAll(() => open.disposeAsync());

async function stop(): Promise<void> {
  if (program.exitCode !== null || program.signalCode !== null) return;
  const ended = once(program, "exit");
  program.kill("SIGTERM");
  await ended;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: any;
}

/** A browser that keeps its cookie. `shows`: the answer's secret that is shown once and must appear nowhere else. */
function newBrowser() {
  const browser = {
    cookie: "",
    async call(method: string, path: string, body: object = {}, shows: readonly string[] = []): Promise<Answer> {
      const headers = { origin: portal, "content-type": "application/json", cookie: browser.cookie };
      const init = method === "GET" ? {} : { body: JSON.stringify(body) };
      const response = await fetch(`${portal}/api${path}`, { method, headers, ...init });
      const text = await response.text();
      const set = response.headers.get("set-cookie");
      if (set) {
        browser.cookie = set.split(";")[0]!;
        if (browser.cookie.split("=")[1]) handedOut.push(browser.cookie.split("=")[1]!);
      }
      const json: unknown = text === "" ? undefined : JSON.parse(text);
      for (const name of shows) handedOut.push(...[(json as Record<string, string | string[]>)[name]!].flat());
      if (shows.length === 0) answers.push(text);
      return { status: response.status, headers: response.headers, json };
    },
    post: (path: string, body?: object, shows?: readonly string[]) => browser.call("POST", path, body, shows),
    get: (path: string) => browser.call("GET", path),
  };
  return browser;
}

async function weiche(...args: string[]): Promise<any> {
  const { code, out, error } = await runWeiche(["--data-dir", join(folder, "data"), ...args, "--json"]);
  if (code !== 0) throw new Error(error);
  return JSON.parse(out);
}

/** Returns the token of the link in the last mail to a person. */
function mailedToken(to: string): string {
  const mail = smtp.mails.findLast((each) => each.to.some((receiver) => receiver.includes(to)))!;
  const token = /#([\w-]{43})/.exec(mail.body)![1]!;
  handedOut.push(token);
  return token;
}

const codeOf = (error: Answer) => `${error.status} ${(error.json as { error: { code: string } }).error.code}`;
const code = (secret: string, offMs = 0) => generateSync({ secret, epoch: Math.floor((Date.now() + offMs) / 1000) });
const [owner, member] = ["owner@example.com", "member@example.com"];
const passwords = { owner: canary(), member: canary() };
let totpSecret = "";

test("people register, are invited by mail, sign in with a second factor, change and reset passwords", async () => {
  const ada = newBrowser();
  expect((await ada.get("/sign-in-offers")).json).toEqual({ registration: true, resetByMail: true, terms: null });
  expect((await ada.post("/registration", { accountName: "ACME", email: owner })).status).toBe(204);
  await until("the link is there", 10_000, () => smtp.mails.some(({ subject }) => subject.includes("confirm your")));
  const confirmation = { token: mailedToken(owner), password: passwords.owner };
  const registered = await ada.post("/registration/confirm", confirmation);
  expect(registered.status).toBe(204);
  expect(registered.headers.get("set-cookie")).toMatch(
    /^__Host-weiche=[\w-]{43}; Path=\/; Max-Age=604\d{3}; HttpOnly; Secure; SameSite=Lax$/,
  );
  const registrationCookie = ada.cookie;
  expect((await ada.get("/profile")).json).toMatchObject({ email: owner, role: "owner", totp: false });

  const created = await ada.post("/users", { email: member, role: "member" }, ["invitationUrl"]);
  expect(created.json).toMatchObject({ mailed: true, user: { state: "invited" } });
  const ben = newBrowser();
  const token = mailedToken(member);
  expect(created.json.invitationUrl).toBe(`${portal}/invitation#${token}`);
  expect((await ben.post("/invitation/preview", { token })).json).toMatchObject({ email: member, state: "open" });
  const joined = await ben.post("/invitation", { token, password: passwords.member, language: "en" });
  expect(joined.status).toBe(204);
  expect(codeOf(await ben.post("/invitation", { token, password: canary() }))).toBe("409 409");
  expect((await ada.get("/invitations")).json.items).toMatchObject([{ email: member, state: "accepted" }]);

  expect(codeOf(await newBrowser().get("/profile"))).toBe("401 login_required");
  const set = await ben.post("/totp/set-up", { password: passwords.member }, ["secret", "uri"]);
  totpSecret = set.json.secret as string;
  expect(codeOf(await ben.post("/totp/confirm", { code: `${marker}123` }))).toBe("401 login_failed");
  const confirmed = await ben.post("/totp/confirm", { code: code(totpSecret, -30_000) }, ["recoveryCodes"]);
  expect(confirmed.json.recoveryCodes).toHaveLength(10);
  expect((await ben.post("/sign-out")).status).toBe(204);
  expect(codeOf(await ben.get("/profile"))).toBe("401 login_required");

  const benAgain = newBrowser();
  const claim = { email: member, password: passwords.member };
  expect(codeOf(await benAgain.post("/sign-in", claim))).toBe("401 totp_required");
  expect(codeOf(await benAgain.post("/sign-in", { ...claim, code: `${marker}456` }))).toBe("401 login_failed");
  expect((await benAgain.post("/sign-in", { ...claim, code: code(totpSecret) })).status).toBe(204);
  expect((await benAgain.get("/devices")).json.items).toMatchObject([{ current: true, source: "127.0.0.1" }]);

  expect((await ada.post("/sign-in", { email: owner, password: passwords.owner })).status).toBe(204);
  expect(ada.cookie).not.toBe(registrationCookie);
  const old = newBrowser();
  old.cookie = registrationCookie;
  expect(codeOf(await old.get("/profile"))).toBe("401 login_required");
  const newPassword = canary();
  expect((await ada.post("/password", { password: passwords.owner, newPassword })).status).toBe(204);

  expect((await newBrowser().post("/password-reset/request", { email: owner })).status).toBe(204);
  await until("the mail is there", 10_000, () => smtp.mails.some(({ subject }) => subject.includes("New password")));
  const reset = { token: mailedToken(owner), password: canary() };
  expect((await newBrowser().post("/password-reset", reset)).status).toBe(204);
  expect(codeOf(await newBrowser().post("/password-reset", reset))).toBe("404 404");
  expect(codeOf(await ada.get("/profile"))).toBe("401 login_required");
  expect((await ada.post("/sign-in", { email: owner, password: reset.password })).status).toBe(204);
  passwords.owner = reset.password;
}, 60_000);

test("an operator helps a person who cannot sign in", async () => {
  const { id } = (await newBrowserOf(owner, passwords.owner).then((ada) => ada.get("/users?search=member"))).json
    .items[0];
  expect(await weiche("user", "totp-off", id)).toEqual({ id });
  const ben = await newBrowserOf(member, passwords.member);
  expect(await weiche("user", "logout", id)).toEqual({ id });
  expect(codeOf(await ben.get("/profile"))).toBe("401 login_required");
  smtp.mood = "refuses-receivers";
  const printed = await weiche("user", "reset-password", id);
  smtp.mood = "friendly";
  expect(printed).toMatchObject({ mailed: false, resetUrl: expect.stringContaining(`${portal}/reset#`) as string });
  handedOut.push(printed.resetUrl.split("#")[1]);
  const nobody = "00000000-0000-7000-8000-000000000000";
  await expect(weiche("user", "invite", nobody)).rejects.toThrow(`there is no user ${nobody}`);
}, 60_000);

test("an operator's invitations are mailed, listed and withdrawn", async () => {
  const account = await weiche("account", "create", "--name", "Globex", "--owner-email", "hank@example.com");
  const second = ["--account", account.id, "--email", "second@example.com"];
  const created = await weiche("user", "create", ...second, "--role", "owner");
  for (const [{ mailed, invitationUrl }, to] of [
    [account, "hank@example.com"],
    [created, "second@example.com"],
  ])
    expect([mailed, invitationUrl]).toEqual([true, `${portal}/invitation#${mailedToken(to)}`]);
  expect(await weiche("user", "withdraw", created.id)).toEqual({ id: created.id });
  const token = created.invitationUrl.split("#")[1];
  expect((await newBrowser().post("/invitation", { token, password: canary() })).status).toBe(409);
  const listed: { email: string }[] = await weiche("user", "invitations", "--account", account.id);
  expect(listed.toSorted((a, b) => a.email.localeCompare(b.email))).toMatchObject([
    { userId: account.ownerUserId, email: "hank@example.com", role: "owner", state: "open" },
    { userId: created.id, email: "second@example.com", role: "owner", state: "withdrawn" },
  ]);
  const nobody = "00000000-0000-7000-8000-000000000000";
  await expect(weiche("user", "invitations", "--account", nobody)).rejects.toThrow(`there is no account ${nobody}`);
}, 60_000);

async function newBrowserOf(email: string, password: string) {
  const browser = newBrowser();
  expect((await browser.post("/sign-in", { email, password })).status).toBe(204);
  return browser;
}

test("a client with too many attempts gets the waiting time", async () => {
  const eve = newBrowser();
  const request = () => eve.post("/password-reset/request", { email: `${marker}@example.com` });
  for (let n = 0; n < 4; n++) expect((await request()).status).toBe(204);
  const refused = await request();
  expect(codeOf(refused)).toBe("429 too_many_attempts");
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(60);
});

test("no log, metric, answer, error or file contains a secret, raw or encoded [E7]", async () => {
  const eve = newBrowser();
  eve.cookie = `__Host-weiche=${asToken()}`;
  for (const path of ["/profile", "/users", `/unknown?${marker}`]) await eve.get(path);
  for (const [path, body] of [
    ["/sign-in", { email: `${marker}3@example.com`, password: canary(), code: canary() }],
    ["/sign-in", { email: canary(), unknown: canary() }],
    ["/registration", { accountName: "E", email: canary(), password: canary() }],
    ["/registration/preview", { token: asToken() }],
    ["/registration/confirm", { token: asToken(), password: canary() }],
    ["/invitation/preview", { token: asToken() }],
    ["/invitation", { token: asToken(), password: canary() }],
    ["/password-reset", { token: asToken(), password: canary(2_000) }],
    ["/password-reset", { token: canary(), password: marker }],
    ["/password-reset/request", { email: `${marker}2@example.com` }],
    [`/invitation?unknown=${marker}`, {}],
  ] as const)
    await eve.post(path, body);
  const metrics = await (await fetch(`${ops}/metrics`)).text();
  expect(metrics).toContain('weiche_router_logins_total{outcome="code-required"} 1');
  expect(metrics).toContain('weiche_router_mails_total{kind="reset",result="failed"} 1');
  await stop();

  expect(log).toContain('"login"');
  expect(canaries).toBeGreaterThan(15);
  expect(handedOut.length).toBeGreaterThan(20);
  const texts = { log, metrics, answers: answers.join("\n") };
  const needles = [...formsOf(marker), ...handedOut.flatMap(formsOf)];
  for (const [name, text] of Object.entries(texts))
    expect([name, needles.filter((needle) => text.includes(needle))]).toEqual([name, []]);
  // TOTP's shared secret is stored in plain. The member's was deleted, but its database page may not be overwritten yet.
  const stored = [...formsOf(marker), ...handedOut.filter((text) => !text.includes(totpSecret))];
  const files = readdirSync(join(folder, "data"), { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, "data", name))
    .filter((name) => statSync(name, { throwIfNoEntry: false })?.isFile());
  expect(files.length).toBeGreaterThan(500);
  const found = files.flatMap((name) => {
    const bytes = readFileSync(name);
    return stored.filter((needle) => bytes.includes(needle)).map((needle) => `${name}: ${needle}`);
  });
  expect(found).toEqual([]);
}, 60_000);

/**
 * The forms of a secret to look for: plain, hex, URL-encoded, and the part of its base64 that does not depend on its
 * offset.
 */
function formsOf(secret: string): string[] {
  const base64 = [0, 1, 2].map((offset) => {
    const text = Buffer.from(" ".repeat(offset) + secret).toString("base64url");
    return text.slice(offset === 0 ? 0 : offset + 1, -3);
  });
  return [secret, Buffer.from(secret).toString("hex"), encodeURIComponent(secret), ...base64];
}
