/**
 * Copies the pages of a release to their paths in the checkout: the pages of `docs`, and every page that one of them
 * links. A link to a file that is not in the release, such as a source, becomes its text.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { copyFile, copyFolder, filesBelow, writeText } from "./copy.ts";
import { root } from "./lock-file.ts";

const ownPages =
  /^(CHANGELOG|docs\/[\w-]+|docs\/decisions\/.+|deploy\/README|deploy\/grafana\/README|deploy\/release\/THIRD-PARTY)\.md$/;
const examples = /^(router|agent|catalogue)\.yaml$|^haproxy\.cfg$/;

/** A link to a file: its text, and its path without the part after `#`. */
const link = /(?<![!\w])\[((?:[^[\]]|\[[^\]]*\])+)\]\((?!https?:|mailto:|#)([^()#\s]+)[^()\s]*\)/g;
const image = /!\[[^\]]*\]\((?!https?:)([^()\s]+)\)/g;

/** Copies the pages into `tree`, which has all other files already, so that links to these files stay. */
export function addDocuments(tree: string): void {
  const from = join(root, "deploy");
  copyFolder(from, join(tree, "deploy"), (path) => examples.test(path));
  for (const folder of ["demo", "examples"])
    for (const path of filesBelow(join(from, folder)).filter((each) => each.endsWith(".yaml")))
      copyFile(join(from, folder, path), join(tree, "deploy", folder, path));
  copyFolder(join(from, "grafana"), join(tree, "deploy/grafana"), (path) => !path.endsWith(".ts"));
  for (const file of ["release/Containerfile", "prometheus/prometheus.yml", "prometheus/rules.yml"])
    copyFile(join(from, file), join(tree, "deploy", file));
  copyFile(join(root, "docs/openapi.yaml"), join(tree, "docs/openapi.yaml"));
  const candidates = ["docs", "deploy"].flatMap((folder) =>
    filesBelow(join(root, folder)).map((path) => join(folder, path)),
  );
  const pages = withNamedPages(["CHANGELOG.md", ...candidates].filter((path) => ownPages.test(path)));
  for (const page of pages) for (const file of [page, ...imagesOf(page)]) copyFile(join(root, file), join(tree, file));
  for (const page of pages) writeText(join(tree, page), withLiveLinks(page, tree));
}

function withNamedPages(pages: readonly string[]): ReadonlySet<string> {
  const named = (page: string) => [...textOf(page).matchAll(link)].map(([, , target]) => pathOf(page, target!));
  return new Set([...pages, ...pages.flatMap(named).filter((path) => path.endsWith(".md"))]);
}

function imagesOf(page: string): readonly string[] {
  return [...textOf(page).matchAll(image)].map(([, target]) => pathOf(page, target!));
}

function withLiveLinks(page: string, tree: string): string {
  return textOf(page).replaceAll(link, (whole, words: string, target: string) =>
    existsSync(join(tree, pathOf(page, target))) ? whole : words,
  );
}

/** A path from the root of the checkout, and of the tree. */
function pathOf(page: string, target: string): string {
  return normalize(join(dirname(page), target));
}

function textOf(page: string): string {
  return readFileSync(join(root, page), "utf8");
}
