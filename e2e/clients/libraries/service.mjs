/** What every client program in Node.js uses: where the service is, its packages, and how results are printed. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";

const { env } = process;
const home = env.CLIENT_HOME;
export const baseURL = env.WEICHE_BASE_URL;
export const apiKey = env.WEICHE_API_KEY;
export const starterKey = env.WEICHE_STARTER_KEY;
export const model = env.WEICHE_MODEL;
export const tooLong = "word ".repeat(40_000);

/** Imports a package of the client's own folder: the repository has other versions of some. */
export const load = createRequire(join(home, "package.json"));

export function versions(...packages) {
  const versionOf = (name) =>
    JSON.parse(readFileSync(join(home, "node_modules", name, "package.json"), "utf8")).version;
  console.log(`versions ${packages.map((name) => `${name} ${versionOf(name)}`).join(", ")}`);
}

/** Prints what came of it: the result, or the class of what was thrown with the beginning of its message. */
export async function check(name, act) {
  const said = await Promise.resolve()
    .then(act)
    .catch((error) => `${nameOf(error)}: ${error.statusCode ?? ""} ${String(error.message).replaceAll(/\s+/g, " ")}`);
  console.log(`${name}: ${String(said).slice(0, 300)}`);
}

/** Some clients name their errors by the class alone. */
const nameOf = (error) => (error.name === "Error" ? error.constructor.name : error.name);

/** Asks so often at once, with the retries that the client has by itself. */
export async function atOnce(count, ask) {
  const begun = performance.now();
  const answers = await Promise.allSettled(Array.from({ length: count }, () => ask()));
  const failed = answers.flatMap(({ reason }) => (reason ? nameOf(reason) : []));
  const seconds = ((performance.now() - begun) / 1_000).toFixed(0);
  return [`${count - failed.length} of ${count} in ${seconds} s`, ...new Set(failed)].join(" ");
}

/** Runs a command of the client's folder with that folder as home. Returns the end of what it says, or of its errors. */
export async function runCommand(name, args, settings = {}) {
  const path = [dirname(process.execPath), env.PATH].join(delimiter);
  const options = { cwd: home, timeout: 120_000, env: { ...env, PATH: path, HOME: home, ...settings } };
  const { promise, resolve } = Promise.withResolvers();
  const done = (_, stdout, stderr) => resolve((stdout.trim() || stderr.trim()).replaceAll(/\s+/g, " ").slice(-300));
  execFile(join(home, "node_modules/.bin", name), args, options, done).stdin.end();
  return promise;
}
