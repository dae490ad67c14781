/** The portal's listener and what is common to all routes of its API. */
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import type { TlsMaterial } from "@weiche/shared/http/tls-files.ts";
import { sessionCookie } from "../../src/surface/server/session-cookie.ts";
import { askTls, certificate } from "../nodes/certificate.ts";
import { startPortal, type Person } from "./portal-rig.ts";

let ada: Person;
const portal = await forThisFile(startPortal());
beforeAll(async () => {
  ada = await portal.newAccount("ACME", { package: "Pro" });
});

test("the front page is the portal's application, the public API is described for tools, and nothing else is shown", async () => {
  const front = await portal.fetch("/");
  expect(front.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(front.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(front.text).toContain('<div id="app">');
  const { json } = await portal.fetch("/openapi.json");
  expect(json.openapi).toMatch(/^3\.1/);
  expect(Object.keys(json.paths)).toContain("/v1/chat/completions");
  expect((await portal.fetch("/nothing")).status).toBe(404);
  expect(front.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  expect((await portal.fetch("/", { method: "POST" })).status).toBe(404);
});

test("a signed-in user gets the list of their allowed actions", async () => {
  const answer = await portal.get("/session", ada);
  expect(answer).toMatchObject({
    status: 200,
    json: { user: { role: "owner", email: ada.email }, account: { name: "ACME" }, apiUrl: "https://api.example/<x>" },
  });
  expect(answer.json.actions).toEqual(expect.arrayContaining(["session", "changePackage", "revokeKey"]));
  expect(answer.json.actions).not.toContain("signIn");
  const member = (await portal.get("/session", await portal.newUser(ada, "member"))).json.actions;
  expect(member).toContain("createKey");
  for (const action of ["changePackage", "listUsers", "listAudit"]) expect(member).not.toContain(action);
});

test("every answer has headers against caching, framing and guessing of content types [E6 H1]", async () => {
  const answers = [
    await portal.get("/session", ada),
    await portal.get("/session"),
    await portal.get("/nothing", ada),
    await portal.send("POST", "/keys", {}, ada),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 401, 404, 400]);
  for (const { headers } of answers) {
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get("content-security-policy")).toContain("require-trusted-types-for 'script'");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  }
});

describe("a change from another site", () => {
  const headers = (more: Record<string, string>) => ({
    "content-type": "application/json",
    cookie: ada.cookie,
    ...more,
  });
  const rename = (more: Record<string, string>, at = portal) =>
    at.fetch("/api/keys", { method: "POST", headers: headers(more), body: JSON.stringify({ name: "x" }) });

  test.each<[string, Record<string, string>, number]>([
    ["its own origin", { origin: "own" }, 201],
    ["the same site, by the browser's word", { "sec-fetch-site": "same-origin" }, 201],
    ["neither", {}, 403],
    ["another origin", { origin: "https://evil.example" }, 403],
    ["no origin at all", { origin: "null" }, 403],
    ["another port", { origin: "http://127.0.0.1:1" }, 403],
    ["another scheme", { origin: "https" }, 403],
    ["a sibling of the same site", { "sec-fetch-site": "same-site" }, 403],
    ["a link", { "sec-fetch-site": "none" }, 403],
    ["an origin that the browser contradicts", { origin: "own", "sec-fetch-site": "cross-site" }, 403],
    ["another origin that pretends", { origin: "https://evil.example", "sec-fetch-site": "same-origin" }, 403],
  ])("is recognised by the origin of its page: %s [E6]", async (_name, more, status) => {
    const origin = { own: portal.origin, https: portal.origin.replace("http", "https") }[more["origin"] ?? ""];
    const answer = await rename(origin ? { ...more, origin } : more);
    expect([answer.status, answer.json.error?.code]).toEqual([status, status === 403 ? "wrong_origin" : undefined]);
  });

  test("cannot be a form, because only JSON is accepted [E6]", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
      expect((await rename({ origin: portal.origin, "content-type": type })).status).toBe(415);
    const chunked = { method: "POST", headers: { cookie: ada.cookie, origin: portal.origin } };
    expect((await portal.fetch("/api/sign-out", chunked)).status).toBe(415);
  });

  test("is compared with the configured URL if there is one, whatever host the request names", async () => {
    await using own = await startPortal({ database: portal.database, publicUrl: "https://portal.example/" });
    const eve = await own.newAccount("E");
    const ask = async (origin: string) =>
      (
        await own.fetch("/api/keys", {
          method: "POST",
          headers: headers({ origin, cookie: eve.cookie }),
          body: '{"name":"x"}',
        })
      ).status;
    expect([await ask("https://portal.example"), await ask(own.origin)]).toEqual([201, 403]);
  });
});

describe("credentials", () => {
  const ask = async (headers: Record<string, string>) => (await portal.fetch("/api/session", { headers })).status;

  test("are refused if two differ, and an API key is not accepted [E4]", async () => {
    const other = await portal.newAccount("Other");
    expect(await ask({ cookie: `a=b; ${ada.cookie}; c=d` })).toBe(200);
    expect(await ask({ cookie: `${ada.cookie}; ${other.cookie}` })).toBe(400);
    expect(await ask({ cookie: ada.cookie, authorization: "Bearer sk-weiche-1" })).toBe(400);
    expect(await ask({ authorization: "Bearer sk-weiche-1" })).toBe(401);
    expect(await ask({ cookie: ada.cookie.replace("__Host-", "") })).toBe(401);
    expect(await ask({ cookie: `${ada.cookie}x` })).toBe(401);
    expect(await ask({ cookie: "__Host-weiche=" })).toBe(401);
  });

  test("are checked before the body is read", async () => {
    const client = connect(portal.port, "127.0.0.1");
    client.write(
      `POST /api/keys HTTP/1.1\r\nhost: 127.0.0.1:${portal.port}\r\norigin: ${portal.origin}\r\n` +
        "content-type: application/json\r\ncontent-length: 60000\r\n\r\n",
    );
    const [answer] = (await once(client, "data")) as [Buffer];
    client.destroy();
    expect(answer.toString()).toMatch(/^HTTP\/1.1 401 /);
  });

  test("are in a cookie that scripts and other sites cannot read [E6]", () => {
    expect(sessionCookie("token", 60.5)).toBe(
      "__Host-weiche=token; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax",
    );
  });
});

test("an address that exceeds its burst gets 503 as JSON, but still the front page", async () => {
  await using slow = await startPortal({
    database: portal.database,
    limits: { perIpPerSecond: 0.001, perIpBurst: 3, trustedProxies: [] },
  });
  const answers = [];
  for (let n = 0; n < 4; n++) answers.push(await slow.get("/session"));
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 503]);
  expect(answers[3]!.headers.get("retry-after")).toBe("60");
  expect(answers[3]!.json.error.code).toBe("too_many_requests");
  expect((await slow.fetch("/")).status).toBe(200);
});

test("a slow body is awaited for a limited time [D1]", async () => {
  await using slow = await startPortal({ database: portal.database, requestMsMax: 500, times: { headersMsMax: 500 } });
  const client = connect(slow.port, "127.0.0.1");
  const head = [
    "POST /api/keys HTTP/1.1",
    "host: x",
    "origin: http://x",
    `cookie: ${ada.cookie}`,
    "content-length: 60",
  ];
  client.write([...head, "content-type: application/json", "", '{"name":'].join("\r\n"));
  const [answer] = (await once(client, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1.1 408 /);
  await once(client, "close");
});

test("the contract imports only the schema builder and lists of names, so that browsers can load it", () => {
  const folder = join(import.meta.dirname, "../../src/surface/contract");
  const files = readdirSync(folder).map((file) => join(folder, file));
  const imports = files.flatMap((file) => readFileSync(file, "utf8").match(/from "[^"]+"/g) ?? []);
  expect(
    imports.filter(
      (from) =>
        !/^from "(typebox|\.\/[a-z-]+\.ts|\.\.\/\.\.\/(usage\/usage-columns|usage\/requests\/outcomes|mail\/mail-topics)\.ts)"$/.test(
          from,
        ),
    ),
  ).toEqual([]);
  expect(imports.length).toBeGreaterThan(20);
});

test("the portal does not start with a route without a handler or a handler without a route", async () => {
  const { handlers } = portal;
  const { session: _gone, ...fewer } = handlers;
  await expect(startPortal({ database: portal.database, handlers: fewer as typeof handlers })).rejects.toThrow(
    "session is missing in",
  );
  const more = { ...handlers, surprise: () => {} };
  await expect(startPortal({ database: portal.database, handlers: more })).rejects.toThrow("surprise is missing in");
});

test("a database that does not answer causes 503, which is not reported as a bug [C4]", async () => {
  const away: unknown[] = [];
  const errors = [
    Object.assign(new Error("canceling statement due to lock timeout"), { code: "55P03" }),
    Object.assign(new Error("connect ENOENT /run/x"), { code: "ENOENT", syscall: "connect" }),
    new Error("timeout exceeded when trying to connect"),
  ];
  await using broken = await startPortal({
    database: portal.database,
    handlers: { ...portal.handlers, showPackage: () => Promise.reject(errors[away.length]) },
    events: {
      requestFailed: (_id, error) => void away.push(`a bug: ${String(error)}`),
      databaseUnavailable: (error) => away.push(error),
      connectionRefused() {},
      forwardedUnread() {},
    },
  });
  const eve = await broken.newAccount("E");
  for (const _error of errors) {
    const answer = await broken.get("/package", eve);
    expect([answer.status, answer.json.error.code, answer.headers.get("retry-after")]).toEqual([
      503,
      "overloaded",
      "2",
    ]);
  }
  expect(away).toEqual(errors);
});

test("a bug is answered with 500 without details, and reported to the operator", async () => {
  const { handlers } = portal;
  const failures: unknown[] = [];
  await using broken = await startPortal({
    database: portal.database,
    handlers: { ...handlers, showPackage: () => Promise.reject(new Error("secret detail")) },
    events: {
      requestFailed: (_id, error) => void failures.push(error),
      databaseUnavailable() {},
      connectionRefused() {},
      forwardedUnread() {},
    },
  });
  const answer = await broken.get("/package", await broken.newAccount("B"));
  expect([answer.status, answer.json.error.code, answer.text.includes("secret")]).toEqual([500, "500", false]);
  expect(String(failures)).toContain("secret detail");
});

test("a new certificate applies to the next connection, and browsers must stay with TLS", async () => {
  const folder = temporaryDirectory();
  const [first, second] = [certificate(folder, "first"), certificate(folder, "second")];
  let change: (material: TlsMaterial) => void = () => {};
  const tls = { current: first, onChange: (callback: typeof change) => ((change = callback), () => {}) };
  await using secure = await startPortal({ database: portal.database, tls });
  expect(await askTls(secure.port, "/api/session")).toEqual(["first", 401]);
  change((tls.current = second));
  expect(await askTls(secure.port, "/")).toEqual(["second", 200]);
});
