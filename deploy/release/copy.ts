/** Copies files into a tree in the same way on every machine: the same modes, and symbolic links that stay inside. */
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

/** Copies files. `wanted` selects by the path below `from`, and unwanted folders are not entered. */
export function copyFolder(from: string, to: string, wanted: (path: string) => boolean = () => true, below = ""): void {
  for (const name of readdirSync(join(from, below)).toSorted()) {
    const path = join(below, name);
    if (!wanted(path)) continue;
    const stat = lstatSync(join(from, path));
    if (stat.isDirectory()) copyFolder(from, to, wanted, path);
    else if (stat.isSymbolicLink()) linkBeside(join(from, path), join(to, path));
    else copyFile(join(from, path), join(to, path));
  }
}

export function copyFile(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  chmodSync(to, (lstatSync(from).mode & 0o100) === 0 ? 0o644 : 0o755);
}

export function writeText(to: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, text);
  chmodSync(to, mode);
}

/** Copies a link. Links that packages make at their installation point to a file of the same folder. */
function linkBeside(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  symlinkSync(basename(readlinkSync(from)), to);
}

/** Lists every file and link below a folder, as sorted paths. */
export function filesBelow(folder: string, below = ""): readonly string[] {
  return readdirSync(join(folder, below), { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(below, entry.name);
      return entry.isDirectory() ? filesBelow(folder, path) : [path];
    });
}
