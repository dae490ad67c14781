/** Writes the licence texts of all third parties, one file for each. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { copyFile, writeText } from "./copy.ts";
import type { Arch } from "./lock-file.ts";
import { thirdParties, type ThirdParty } from "./third-party.ts";

/** Writes the texts. `installed` finds a path of the project. */
export function writeLicences(folder: string, arch: Arch, installed: (path: string) => string): void {
  for (const one of thirdParties().filter(({ arches }) => arches.includes(arch)))
    writeText(join(folder, `${fileName(one)}.txt`), licenceOf(one, installed(one.path)));
  copyFile(join(import.meta.dirname, "inside-binaries.txt"), join(folder, "inside-binaries.txt"));
}

function fileName({ name, version }: ThirdParty): string {
  return `${name.replace("/", "__")}-${version}`;
}

/** Returns the package's licence texts, or the facts in its package.json if it has none. */
function licenceOf({ name, version, license }: ThirdParty, installed: string): string {
  const texts = readdirSync(installed)
    .filter((file) => /^(licen[cs]e|copying|notice|unlicense)/i.test(file))
    .toSorted()
    .map((file) => readFileSync(join(installed, file), "utf8").trimEnd());
  const { author, repository } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Said;
  const said = [
    `${name} ${version}`,
    `Licence: ${license}`,
    ...(author ? [`Author: ${typeof author === "string" ? author : author.name}`] : []),
    ...(repository ? [`Source: ${typeof repository === "string" ? repository : repository.url}`] : []),
    ...(texts.length === 0 ? ["The package contains no text of its licence."] : []),
  ];
  return `${[said.join("\n"), ...texts].join("\n\n")}\n`;
}

interface Said {
  readonly author?: string | { readonly name: string };
  readonly repository?: string | { readonly url: string };
}
