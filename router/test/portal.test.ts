import { expect, test } from "vitest";
import { openPortal } from "../src/portal/portal-server.ts";

test("the portal tells where the API is, describes it for tools, and shows nothing else", async () => {
  await using portal = await openPortal({ host: "127.0.0.1", port: 0 }, "https://api.example/<x>");
  const at = `http://127.0.0.1:${portal.address.port}`;
  const front = await fetch(`${at}/`);
  expect(front.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(await front.text()).toContain("https://api.example/&#60;x&#62;");
  const openApi = (await (await fetch(`${at}/openapi.json`)).json()) as { openapi: string; paths: object };
  expect(openApi.openapi).toMatch(/^3\.1/);
  expect(Object.keys(openApi.paths)).toContain("/v1/chat/completions");
  expect((await fetch(`${at}/nothing`)).status).toBe(404);
  expect((await fetch(`${at}/`, { method: "POST" })).status).toBe(404);
});
