/** `npm run portal:dev` serves the pages from their sources. */
import { join } from "node:path";
import { createServer } from "vite";
import { expect, test, vi } from "vitest";
import { startPortal } from "../surface/portal-rig.ts";
import { openTab, startBrowser } from "./browser.ts";

const portalWeb = join(import.meta.dirname, "../../portal-web");

test("the portal's sources run in a browser, and their calls and changes reach the router", async () => {
  await using opened = new AsyncDisposableStack();
  const portal = opened.use(await startPortal());
  vi.stubEnv("WEICHE_PORTAL_LISTEN", new URL(portal.origin).host);
  opened.defer(() => void vi.unstubAllEnvs());
  const server = await createServer({
    configFile: join(portalWeb, "vite.config.ts"),
    server: { host: "127.0.0.1", port: 0, hmr: false },
  });
  opened.defer(() => server.close());
  await server.listen();
  const browser = await startBrowser();
  opened.defer(() => browser.close());
  const owner = await portal.newAccount("ACME GmbH");
  const origin = server.resolvedUrls!.local[0]!.replace(/\/$/, "");
  const tab = opened.use(await openTab(browser, origin, { cookie: owner.cookie }));
  await tab.page.goto("/keys");
  await tab.page.getByRole("heading", { name: "Keys", level: 1 }).waitFor();
  expect(await tab.page.locator("script[src^='/src/']").count()).toBe(1);
  const made = await tab.page.evaluate(`fetch("/api/keys", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: "from a source" }),
  }).then((answer) => answer.status)`);
  expect(made).toBe(201);
  tab.check();
});
