/** Tests that a program which cannot start logs the reason in one clear line and ends with exit code 1. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { notRun } from "@weiche/shared/testing/needs.ts";
import { reachableDirectory } from "../cluster/cluster.ts";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const anyPort = "127.0.0.1:0";
const listeners = ["API", "PORTAL", "CONSOLE", "NODES", "DATA", "OPS", "AGENT_OPS"].map(
  (name) => `WEICHE_${name}_LISTEN`,
);
let directory: string;
beforeAll(() => (directory = reachableDirectory("weiche-bad-")));
afterAll(() => rmSync(directory, { recursive: true }));

/** A user id other than root that has no name. */
const nameless = ["unshare", "--user", "--map-user=54321"] as const;
const ifNameless =
  spawnSync(nameless[0], [...nameless.slice(1), "true"]).status === 0
    ? {}
    : notRun("unshare --user is not allowed here");

/** Runs a program until it ends. Returns its exit code and its output on stderr. `as` is the command that starts it. */
async function run(file: string, args: readonly string[], more: Record<string, string>, as: readonly string[] = []) {
  const env = {
    ...process.env,
    ...Object.fromEntries(listeners.map((name) => [name, anyPort])),
    WEICHE_DATA_DIR: join(directory, "data"),
    ...more,
  };
  const [program, ...all] = [...as, process.execPath, join(root, file), ...args];
  const child = spawn(program!, all, { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, "exit")) as [number];
  return { code, lines: said.trim().split("\n") };
}

function file(name: string, text: string, mode = 0o644): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const router = "router/src/main.ts";
const agent = "node-agent/src/main.ts";
const start = "deploy/start.ts";

const cases: [name: string, program: string, args: string[], env: () => Record<string, string>, line: RegExp][] = [
  [
    "an unknown key of router.yaml",
    router,
    [],
    () => ({ WEICHE_CONFIG: file("a.yaml", "catalogue: c.yaml\nlimts: {}\n") }),
    /^weiche-router: .*a\.yaml:2: unknown key "limts"; did you mean "limits"\?$/,
  ],
  [
    "an unknown key of agent.yaml",
    agent,
    [],
    () => ({ WEICHE_AGENT_CONFIG: file("b.yaml", "node: x\nslots:\n  - name: a\n    engine: []\n") }),
    /^weiche-node-agent: .*b\.yaml:\d: .*did you mean "engines"\?/,
  ],
  [
    "a missing file",
    router,
    [],
    () => ({ WEICHE_CONFIG: "/nowhere/router.yaml" }),
    /^weiche-router: cannot read \/nowhere\/router\.yaml: it does not exist \(ENOENT\)\. Check the path$/,
  ],
  [
    "a mistake in the catalogue",
    router,
    [],
    () => {
      file("c.yaml", "- id: x\n  category: languge\n");
      return { WEICHE_CONFIG: file("d.yaml", "catalogue: c.yaml\n") };
    },
    /^weiche-router: .*c\.yaml:\d+: .*category.* must be one of/,
  ],
  [
    "a listener for nodes outside loopback without TLS",
    router,
    [],
    () => ({ WEICHE_NODES_LISTEN: "0.0.0.0:0" }),
    /^weiche-router: .*listen\.nodes 0\.0\.0\.0:0 is not loopback: it needs nodes\.tls/,
  ],
  [
    "the console outside loopback without TLS",
    router,
    [],
    () => ({ WEICHE_CONSOLE_LISTEN: "0.0.0.0:0" }),
    /^weiche-router: .*listen\.console 0\.0\.0\.0:0 is not loopback: it needs tls/,
  ],
  [
    "an invalid address",
    router,
    [],
    () => ({ WEICHE_API_LISTEN: "8080" }),
    /^weiche-router: listen\.api or WEICHE_API_LISTEN: "8080" is not host:port$/,
  ],
  [
    "a router.yaml with a database password that others may read",
    router,
    [],
    () => ({ WEICHE_CONFIG: file("e.yaml", "catalogue: c.yaml\ndatabase: { url: 'postgres://u:secret@db/w' }\n") }),
    /^weiche-router: (.*e\.yaml) holds a password \(database\.url\), but its mode 0644 gives other users access.*: chmod go= \1$/,
  ],
  [
    "a router.yaml with a mail server's password that its group may read",
    router,
    [],
    () => {
      const text = "catalogue: c.yaml\nsmtp: { url: 'smtps://u:secret@mail', from: a@b.example }\n";
      return { WEICHE_CONFIG: file("f.yaml", text, 0o640) };
    },
    /^weiche-router: (.*f\.yaml) holds a password \(smtp\.url\), but its mode 0640 gives other users access.*: chmod go= \1$/,
  ],
  [
    "a password file that others may read",
    router,
    [],
    () => {
      file("database-password", "secret\n");
      const database = "{ url: 'postgres://u@db/w', passwordFile: database-password }";
      return { WEICHE_CONFIG: file("g.yaml", `catalogue: c.yaml\ndatabase: ${database}\n`) };
    },
    /^weiche-router: (.*\/database-password) holds a password, but its mode 0644 gives other users access.*: chmod go= \1$/,
  ],
  [
    "an agent.yaml with a token that others may read",
    agent,
    [],
    () => {
      const engine = "{ model: m, dialect: vllm, command: [x, '{port}'], env: { HF_TOKEN: secret } }";
      return { WEICHE_AGENT_CONFIG: file("h.yaml", `node: x\nslots: [{ name: a, engines: [${engine}] }]\n`) };
    },
    /^weiche-node-agent: (.*h\.yaml) holds a secret \(env\.HF_TOKEN of m in slot a\), but its mode 0644 .*: chmod go= \1$/,
  ],
  [
    "a missing GGUF",
    start,
    ["--gguf", "/nowhere/model.gguf"],
    () => ({}),
    /^weiche: cannot read \/nowhere\/model\.gguf: it does not exist \(ENOENT\)\. Check the path$/,
  ],
  [
    "a missing GGUF whose path is relative to npm's folder",
    start,
    ["--gguf", "model.gguf"],
    () => ({ INIT_CWD: directory }),
    /^weiche: cannot read .*\/weiche-bad-\w+\/model\.gguf: it does not exist \(ENOENT\)\. Check the path$/,
  ],
  [
    "a file that is no GGUF",
    start,
    ["--gguf", join(root, "package.json")],
    () => ({}),
    /^weiche: .*package\.json is not a GGUF file$/,
  ],
  ["an option without its file", start, ["--gguf"], () => ({}), /^weiche: Option '--gguf.* missing; usage: npm start/],
  ["an unknown option", start, ["--port", "1"], () => ({}), /^weiche: Unknown option '--port'.*; usage: npm start/],
];

test.each(cases)("a start fails with one clear line: %s [G1]", async (_name, program, args, env, line) => {
  const { code, lines } = await run(program, args, env());
  expect(lines).toEqual([expect.stringMatching(line)]);
  expect(code).toBe(1);
});

test.each([
  ["the router alone", router, "weiche-router: "],
  ["npm start", start, "weiche: the router could not start: "],
])("a start fails with one clear line: a port in use, %s [G1]", async (_name, program, prefix) => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = `127.0.0.1:${(taken.address() as { port: number }).port}`;
  const { code, lines } = await run(program, [], { WEICHE_API_LISTEN: address });
  const others = lines.filter((line) => !line.startsWith("router: the database runs as another user"));
  expect(others).toEqual([
    `${prefix}cannot listen on ${address} (listen.api or WEICHE_API_LISTEN): the port is in use`,
  ]);
  expect(code).toBe(1);
  taken.close();
});

test.each([
  ["the router alone", router, "weiche-router: "],
  ["an agent alone", agent, "weiche-node-agent: "],
  ["npm start", start, "weiche: "],
])(
  "a start fails with one clear line: a data directory that is not writable, %s",
  ifNameless,
  async (_name, program, prefix) => {
    const readOnly = join(directory, "read-only");
    mkdirSync(readOnly, { recursive: true, mode: 0o555 });
    const { code, lines } = await run(program, [], { WEICHE_DATA_DIR: join(readOnly, "data") }, nameless);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      new RegExp(`^${prefix}cannot write to the data directory .*/data.*: EACCES; set WEICHE_DATA_DIR`),
    );
    expect(code).toBe(1);
  },
);

test("a start fails with one clear line: an embedded database for a user id without a name", ifNameless, async () => {
  const folder = { WEICHE_DATA_DIR: join(directory, "nameless") };
  const { code, lines } = await run(router, [], folder, nameless);
  expect(lines).toEqual([
    "weiche-router: the embedded PostgreSQL needs a name for the user id 54321: add it to /etc/passwd, or name a server with database.url",
  ]);
  expect(code).toBe(1);
});

test("a start fails with one clear line: an agent whose port is in use", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = `127.0.0.1:${(taken.address() as { port: number }).port}`;
  const { code, lines } = await run(agent, [], { WEICHE_AGENT_OPS_LISTEN: address });
  expect(lines).toEqual([
    `weiche-node-agent: cannot listen on ${address} (listen.ops or WEICHE_AGENT_OPS_LISTEN): the port is in use`,
  ]);
  expect(code).toBe(1);
  taken.close();
});

test.each([
  [router, "weiche-router"],
  [agent, "weiche-node-agent"],
  [start, "weiche"],
])("%s reports clearly that an older Node.js runs it", (program, name) => {
  const files = [
    readFileSync(join(root, program), "utf8"),
    readFileSync(join(root, "shared/src/program/node-version.ts"), "utf8"),
  ];
  // No file with newer syntax may be loaded before the check.
  expect(files.join("\n")).not.toMatch(/\busing\b(?!`)|Temporal\./);
  expect(files[0]!.match(/^import .*$/gm)).toEqual([
    'import { requireNode } from "@weiche/shared/program/node-version.ts";',
  ]);
  expect(files[0]).toContain(`requireNode("${name}");`);
  const check = `const { requireNode } = await import(${JSON.stringify(join(root, "shared/src/program/node-version.ts"))}); requireNode("x", "22.21.0");`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", check], { encoding: "utf8" });
  expect(stderr).toBe(
    "x: Node.js 26 is required, but this is 22.21.0: start with npm, or with node_modules/.bin/node\n",
  );
  expect(status).toBe(1);
});
