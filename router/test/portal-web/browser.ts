/**
 * Chromium for the tests of the portal: the browser that `WEICHE_CHROMIUM` names, or else the one inside the package
 * `@sparticuz/chromium`. A test fails if a page logs an error on the console, violates the content security policy, or
 * sends a request to another host.
 */
import { createReadStream, createWriteStream, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { createBrotliDecompress } from "node:zlib";
import { madeOnce } from "@weiche/shared/testing/made-once.ts";
import {
  chromium,
  type Browser,
  type BrowserContextOptions,
  type Locator,
  type Page,
  type Request,
} from "playwright-core";

export type { Browser, Locator, Page };

/** Starts a browser. The test must close it. */
export async function startBrowser(): Promise<Browser> {
  const named = process.env["WEICHE_CHROMIUM"];
  try {
    if (named !== undefined) return await chromium.launch({ executablePath: named });
    const { program, libraries, fonts } = await unpackChromium();
    const env = process.env as Record<string, string>;
    // Uses the package's fonts, NSS and NSPR on systems without them.
    const withFonts = existsSync("/etc/fonts/fonts.conf") ? env : { ...env, FONTCONFIG_FILE: fonts };
    return await chromium
      .launch({ executablePath: program, env: withFonts })
      .catch(() => chromium.launch({ executablePath: program, env: { ...withFonts, LD_LIBRARY_PATH: libraries } }));
  } catch (error) {
    const why = (error as Error).message.split("\n").slice(0, 4).join(" ");
    throw new Error(
      `The tests of the portal need a Chromium that starts: install one (apt-get install chromium) and set WEICHE_CHROMIUM to its path. ${why}`,
    );
  }
}

/** Unpacks Chromium once per version and machine. */
async function unpackChromium(): Promise<Record<"program" | "libraries" | "fonts", string>> {
  const entry = createRequire(import.meta.url).resolve("@sparticuz/chromium");
  const packageDir = join(dirname(entry), "..");
  const { version } = createRequire(import.meta.url)(join(packageDir, "package.json")) as { version: string };
  const directory = join(tmpdir(), `weiche-browser-${version}-${process.getuid?.() ?? 0}`);
  await madeOnce(directory, async (fresh) => {
    const unpack = (name: string, to: NodeJS.WritableStream) =>
      pipeline(createReadStream(join(packageDir, "bin", name)), createBrotliDecompress(), to);
    for (const folder of ["libraries", "fonts"]) mkdirSync(join(fresh, folder));
    await Promise.all([
      unpack("chromium.br", createWriteStream(join(fresh, "chromium"), { mode: 0o755 })),
      unpack("al2023.tar.br", tarInto(join(fresh, "libraries"), packageDir)),
      unpack("fonts.tar.br", tarInto(join(fresh, "fonts"), packageDir)),
    ]);
    const folders = `<dir>${directory}/fonts</dir><cachedir>${directory}/fonts-cache</cachedir>`;
    writeFileSync(join(fresh, "fonts.conf"), `<fontconfig>${folders}</fontconfig>`);
  });
  const [program, libraries, fonts] = ["chromium", "libraries/lib", "fonts.conf"].map((path) => join(directory, path));
  return { program: program!, libraries: libraries!, fonts: fonts! };
}

/** Unpacks with the package's tar reader. */
function tarInto(directory: string, packageDir: string): NodeJS.WritableStream {
  const { extract } = createRequire(join(packageDir, "package.json"))("tar-fs") as {
    readonly extract: (directory: string) => NodeJS.WritableStream;
  };
  return extract(directory);
}

export interface Tab extends AsyncDisposable {
  readonly page: Page;
  /** Returns the API calls since the last call of this function, such as `GET /api/keys`. */
  asked(): string[];
  /** Resolves once every request of the page is answered and its result is shown. */
  settled(): Promise<void>;
  /** Throws if the page did something forbidden. Parts of provoked errors' texts are given as exceptions. */
  check(expected?: readonly string[]): void;
}

interface TabOptions {
  readonly cookie?: string;
  readonly language?: "de" | "en";
  readonly options?: BrowserContextOptions;
}

export async function openTab(browser: Browser, origin: string, more: TabOptions = {}): Promise<Tab> {
  const { cookie, language = "en", options } = more;
  const context = await browser.newContext({
    baseURL: origin,
    locale: language === "de" ? "de-DE" : "en-GB",
    viewport: { width: 1280, height: 800 },
    ...options,
  });
  if (cookie !== undefined) {
    const [name, value] = cookie.split("=") as [string, string];
    // Its name begins with __Host-, which requires a secure cookie. Chromium accepts it on loopback.
    await context.addCookies([{ name, value, url: origin.replace("http:", "https:"), secure: true, httpOnly: true }]);
  }
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const faults: string[] = [];
  let asked: string[] = [];
  const running = new Set<Request>();
  const over = (request: Request) => void running.delete(request);
  page.on("requestfinished", over);
  page.on("requestfailed", over);
  // Chromium writes a line for every answer of 400 or more, which are part of what pages do.
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !message.text().startsWith("Failed to load resource"))
      faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.stack ?? error.message}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !["data:", "blob:"].includes(url.protocol))
      faults.push(`foreign request: ${url.href}`);
    running.add(request);
    if (url.pathname.startsWith("/api/")) asked.push(`${request.method()} ${url.pathname}`);
  });
  return {
    page,
    asked() {
      const since = asked;
      asked = [];
      return since;
    },
    async settled() {
      const frames =
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))";
      for (let quiet = 0; quiet < 2;) {
        await page.evaluate(frames);
        quiet = running.size === 0 ? quiet + 1 : 0;
      }
    },
    check(expected = []) {
      const found = faults.filter((fault) => !expected.some((text) => fault.includes(text)));
      if (found.length > 0) throw new Error(`${page.url()}: ${found.join("\n")}`);
    },
    async [Symbol.asyncDispose]() {
      await context.close();
    },
  };
}

const axeFile = fileURLToPath(import.meta.resolve("axe-core/axe.min.js"));

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly help: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
  }[];
}

/** Returns a line for each violation of WCAG 2.2 AA that axe finds on the page as shown now. Every page must have none. */
export async function axeFindings(page: Page): Promise<string[]> {
  // Axe is injected as a text, which Trusted Types forbid to the page itself, so it comes through the debugger.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(readFileSync(axeFile, "utf8"));
  // Rules that do not apply while a menu is open: the menu is outside of all landmarks, and the library's focus guards
  // pass every focus on at once.
  const result = (await page.evaluate(`axe.run({ exclude: ["[data-base-ui-focus-guard]"] }, {
    preload: false, // it would fetch styles, of which it needs none
    resultTypes: ["violations"],
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    rules: { region: { enabled: !document.querySelector("[role=menu]") } },
  })`)) as AxeResult;
  return result.violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary ?? ""}`).join(" | ")}`,
  );
}
