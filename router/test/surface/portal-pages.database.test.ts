/** The built application on the portal's listener. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { pagePaths } from "../../src/surface/portal/page-paths.ts";
import { builtPortal } from "../../src/surface/server/built-pages.ts";
import { startPortal } from "./portal-rig.ts";

const portal = await forThisFile(startPortal());

/** Fetches without the decoding and headers that `fetch` adds. */
async function ask(path: string, headers: Record<string, string> = {}) {
  const asked = get(`${portal.origin}${path}`, { headers });
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  const bytes = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>));
  return { status: response.statusCode!, headers: response.headers, bytes };
}

test("every page is the same document, which browsers revalidate each time", async () => {
  const document = readFileSync(join(builtPortal, "index.html"));
  for (const path of pagePaths) {
    const { status, headers, bytes } = await ask(path);
    expect({ path, status, same: bytes.equals(document) }).toEqual({ path, status: 200, same: true });
    expect(headers["cache-control"]).toBe("no-cache");
    expect((await ask(path, { "if-none-match": String(headers["etag"]) })).status).toBe(304);
  }
});

test("files with a hash in their names may be cached for ever, and have a compression that the client accepts", async () => {
  for (const name of readdirSync(join(builtPortal, "assets"))) {
    const file = readFileSync(join(builtPortal, "assets", name));
    const plain = await ask(`/assets/${name}`);
    expect(plain.bytes.equals(file)).toBe(true);
    expect(plain.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    expect(plain.headers["x-content-type-options"]).toBe("nosniff");
    if (file.length < 1_000) continue;
    const brotli = await ask(`/assets/${name}`, { "accept-encoding": "gzip, deflate, br, zstd" });
    expect(brotli.headers).toMatchObject({ "content-encoding": "br", vary: "accept-encoding" });
    expect(brotliDecompressSync(brotli.bytes).equals(file)).toBe(true);
    const gzip = await ask(`/assets/${name}`, { "accept-encoding": "gzip" });
    expect(gunzipSync(gzip.bytes).equals(file)).toBe(true);
  }
});

test.each(["/assets/", "/assets/../../package.json", "/assets/%2e%2e/index.html", "/index.html", "/src/main.tsx"])(
  "only built files are served, not %s",
  async (path) => expect((await ask(path)).status).toBeGreaterThanOrEqual(400),
);

test("a browser at an unknown address gets the application, which says so, and other clients get a short answer", async () => {
  const document = readFileSync(join(builtPortal, "index.html"));
  const page = await ask("/no/such/page", { accept: "text/html,*/*;q=0.8" });
  expect([page.status, page.bytes.equals(document)]).toEqual([404, true]);
  const other = await ask("/assets/gone.js", { accept: "*/*" });
  expect([other.status, other.bytes.equals(document)]).toEqual([404, false]);
});
