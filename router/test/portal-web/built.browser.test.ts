/** The committed applications match their source. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { builtConsole, builtPortal } from "../../src/surface/server/built-pages.ts";

const root = join(import.meta.dirname, "../../..");
const fresh = mkdtempSync(join(tmpdir(), "weiche-portal-"));
afterAll(() => rmSync(fresh, { recursive: true }));

function contents(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = names.map((entry) => join(entry.parentPath, entry.name)).toSorted();
  return Object.fromEntries(paths.map((path) => [path.slice(directory.length + 1), readFileSync(path, "utf8")]));
}

test.each([
  ["the portal", [], builtPortal],
  ["the console", ["--mode", "console"], builtConsole],
])("`npm run portal` would not change %s", (_what, mode, committedAt) => {
  const vite = join(root, "node_modules/vite/bin/vite.js");
  const env = { ...process.env, NODE_ENV: "production" };
  execFileSync(process.execPath, [vite, "build", "router/portal-web", ...mode, "--outDir", fresh], { cwd: root, env });
  const [committed, built] = [contents(committedAt), contents(fresh)];
  const stale = Object.keys(built).filter((name) => committed[name] !== built[name]);
  const files = Object.keys(committed);
  expect({ files, stale }, "run `npm run portal` and commit router/portal-web/built and built-console").toEqual({
    files: Object.keys(built),
    stale: [],
  });
});
