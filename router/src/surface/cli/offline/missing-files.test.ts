/** Files that a command names and cannot read are refused before the command changes anything. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { runCli } from "../cli.ts";

test.each([
  ["restore", ["restore", "lost.zst"]],
  ["restore with an audit log", ["restore", "here.zst", "--audit-log", "here.log", "lost.zst"]],
  ["restore --check", ["restore", "lost.zst", "--check"]],
  ["usage trace", ["usage", "trace", "lost.zst"]],
  ["simulate", ["simulate", "lost.zst"]],
  ["check-config", ["check-config", "lost.zst"]],
])("%s names the file that does not exist, and changes nothing", async (_, args) => {
  const folder = temporaryDirectory();
  for (const name of ["here.zst", "here.log"]) writeFileSync(join(folder, name), "");
  const inFolder = args.map((arg) => (/\./.test(arg) ? join(folder, arg) : arg));
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const data = join(folder, "data");
  const code = await runCli(["--data-dir", data, ...inFolder], {}, { input: new PassThrough(), output, errors });
  const said = String(errors.read()).replaceAll(folder, "");
  expect([code, said]).toEqual([1, "weiche: cannot read /lost.zst: it does not exist (ENOENT). Check the path\n"]);
  expect([output.read(), existsSync(data)]).toEqual([null, false]);
});
