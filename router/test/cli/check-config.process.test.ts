/** `weiche check-config` with real certificates, keys and modes in a folder. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { makeAuthority, makeCertificate } from "../../src/certificates/certificate-folder.ts";
import { runWeiche } from "./run-weiche.ts";

const dayMs = 86_400_000;
let folder: string;
let ca: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "weiche-check-"));
  ca = join(folder, "ca");
  const nowMs = Date.now();
  makeAuthority({ folder: ca, nowMs });
  makeCertificate({ folder: ca, nowMs }, "router", ["router1.example", "10.0.0.1"]);
  writeFileSync(join(folder, "catalogue.yaml"), catalogue);
});
afterEach(() => rmSync(folder, { recursive: true }));

const catalogue = readFileSync(join(import.meta.dirname, "../../../deploy/demo/catalogue.yaml"), "utf8");
const file = (name: string) => join(ca, name);

function tls({ cert = "router-router1.example.pem", key = "router-router1.example.key", authority = "ca.pem" } = {}) {
  return ["nodes:", "  tls:", `    cert: ca/${cert}`, `    key: ca/${key}`, `    ca: ca/${authority}`];
}

function write(lines: readonly string[], name = "router.yaml"): string {
  writeFileSync(join(folder, name), ["catalogue: catalogue.yaml", ...lines, ""].join("\n"));
  return join(folder, name);
}

/** Runs `check-config`. Returns its exit code, its output without the folder's name, and stderr. */
async function check(path: string, ...options: string[]) {
  const { code, out, error: stderr } = await runWeiche([...options, "check-config", path]);
  const said = out.replaceAll(`${folder}/`, "");
  return { code, said, lines: said.trim().split("\n"), stderr };
}

test("check-config accepts a router.yaml with a valid certificate, key, authority and catalogue", async () => {
  const path = write([...tls(), "  dataAdvertise: router1.example:7444", "listen: { nodes: 0.0.0.0:7443 }"]);
  expect(await check(path)).toMatchObject({ code: 0, lines: ["router.yaml is fine", "catalogue.yaml is fine"] });
});

test("check-config names each missing or wrong part of the operator's data for invoices", async () => {
  const seller =
    '  seller: { name: "Weiche Betriebs GmbH", address: ["Musterweg 1", "10115 Berlin"], vatId: DE123456789 }';
  const fine = write(["invoices:", "  since: 2027-01-01", seller, "  vat: { percent: 19 }"]);
  expect(await check(fine)).toMatchObject({ code: 0, lines: ["router.yaml is fine", "catalogue.yaml is fine"] });
  const partly = await check(write(["invoices:", "  numberPrefix: 'a/b'", "  seller: { name: A }"]));
  expect(partly.code).toBe(1);
  for (const what of ["invoices.since", "invoices.vat", "invoices.seller.address", "invoices.numberPrefix"])
    expect(partly.said).toContain(what);
  const wrong = await check(
    write(["invoices:", "  since: 2027-02-30", "  seller: { name: A, address: [B] }", "  vat: { percent: 0 }"]),
  );
  expect(wrong.lines.slice(0, 3)).toEqual([
    "router.yaml:3: invoices.since 2027-02-30 is no day: write it like 2027-01-31",
    "router.yaml:4: invoices.seller needs vatId or taxNumber: an invoice without either is not valid",
    "router.yaml:5: invoices.vat.note is missing: a rate of 0 needs the reason for it",
  ]);
});

test("check-config reports every mistake of the file and its catalogue with its line, and exits with 1", async () => {
  writeFileSync(join(folder, "catalogue.yaml"), "- id: x\n  category: languge\n");
  const path = write([
    "listen:",
    "  api: '8080'",
    "  nodes: nowhere",
    "smtp:",
    "  url: smtps://a",
    "  from: a@b.example",
  ]);
  const { code, lines, stderr } = await check(path);
  expect([code, lines.slice(0, 2)]).toEqual([
    1,
    ['router.yaml:3: listen.api: "8080" is not host:port', 'router.yaml:4: listen.nodes: "nowhere" is not host:port'],
  ]);
  expect(stderr).toContain("the router would not start");
  const exposed = await check(write(["listen:", "  ops: 0.0.0.0:9464", "  data: 0.0.0.0:7444"]));
  expect(exposed.lines.map((line) => line.slice(0, 60))).toEqual([
    "router.yaml:3: listen.ops 0.0.0.0:9464 is not loopback: set ",
    "router.yaml:4: listen.data 0.0.0.0:7444 is not loopback: it ",
  ]);
  const second = await check(write([]));
  expect([second.code, second.lines[0], second.lines.at(-1)]).toEqual([
    1,
    "router.yaml is fine",
    expect.stringMatching(/^catalogue\.yaml:2: "0\.category" must be one of .*; did you mean "language"\?$/),
  ]);
});

test("a secret that is missing or readable by others is a mistake", async () => {
  const path = write(["database:", "  url: postgres://u@db/w", "  passwordFile: password"]);
  writeFileSync(join(folder, "password"), "secret\n");
  chmodSync(join(folder, "password"), 0o644);
  const { code, lines, said } = await check(path);
  expect([code, lines[0]]).toEqual([
    1,
    expect.stringMatching(/^router\.yaml:4: password holds a password, but its mode 0644 .* chmod g?o= /),
  ]);
  expect(said).not.toContain("secret");
  chmodSync(join(folder, "password"), 0o600);
  expect(await check(path)).toMatchObject({ code: 0 });
  rmSync(join(folder, "password"));
  expect((await check(path)).lines[0]).toBe(
    "router.yaml:4: cannot read password: it does not exist (ENOENT). Check the path",
  );
});

const cases: [what: string, prepare: () => string[], line: string | RegExp, code: 0 | 1][] = [
  [
    "a certificate that has expired",
    () => {
      makeCertificate({ folder: ca, nowMs: Date.now() - 11 * dayMs, days: 10 }, "router", ["old"]);
      return tls({ cert: "router-old.pem", key: "router-old.key" });
    },
    /^router\.yaml:4: ca\/router-old\.pem expired at 20.*Z: renew it$/,
    1,
  ],
  [
    "a certificate that is not valid yet",
    () => {
      makeCertificate({ folder: ca, nowMs: Date.now() + dayMs }, "router", ["early"]);
      return tls({ cert: "router-early.pem", key: "router-early.key" });
    },
    /^router\.yaml:4: ca\/router-early\.pem is not valid before 20.*Z: is the clock right\?$/,
    1,
  ],
  [
    "a certificate with few days left",
    () => {
      makeCertificate({ folder: ca, nowMs: Date.now(), days: 20 }, "router", ["short"]);
      return tls({ cert: "router-short.pem", key: "router-short.key" });
    },
    /^router\.yaml:4: warning: ca\/router-short\.pem expires at 20.*Z, in (19|20) days: renew it$/,
    0,
  ],
  [
    "a key of another certificate",
    () => {
      makeCertificate({ folder: ca, nowMs: Date.now() }, "router", ["other"]);
      return tls({ key: "router-other.key" });
    },
    "router.yaml:5: ca/router-other.key is not the key of ca/router-router1.example.pem",
    1,
  ],
  [
    "a key that others may read",
    () => {
      chmodSync(file("router-router1.example.key"), 0o644);
      return tls();
    },
    /^router\.yaml:5: ca\/router-router1\.example\.key holds a private key, but its mode 0644 gives other users access/,
    1,
  ],
  ["a missing key", () => tls({ key: "nowhere.key" }), "router.yaml:5: ca/nowhere.key is not there", 1],
  [
    "a key that is none",
    () => {
      writeFileSync(file("x.key"), "no key", { mode: 0o600 });
      return tls({ key: "x.key" });
    },
    "router.yaml:5: ca/x.key holds no private key that can be read: PEM without a passphrase",
    1,
  ],
  [
    "a file that holds no certificate",
    () => tls({ authority: "router-router1.example.key" }),
    "router.yaml:6: ca/router-router1.example.key holds no certificate",
    1,
  ],
  [
    "a certificate of another authority",
    () => {
      makeAuthority({ folder: join(folder, "ca", "other"), nowMs: Date.now() });
      return tls({ authority: "other/ca.pem" });
    },
    "router.yaml:4: warning: ca/router-router1.example.pem is not signed by ca/other/ca.pem: the other end must trust another authority",
    0,
  ],
  [
    "a certificate without the name that nodes dial",
    () => [...tls(), "  dataAdvertise: router2.example:7444"],
    "router.yaml:4: ca/router-router1.example.pem lacks the name router2.example, which nodes dial (nodes.announce, nodes.dataAdvertise)",
    1,
  ],
  [
    "an authority that has expired",
    () => {
      makeAuthority({ folder: join(folder, "ca", "old"), nowMs: Date.now() - 11 * dayMs, days: 10 });
      return tls({ authority: "old/ca.pem" });
    },
    /^router\.yaml:6: ca\/old\/ca\.pem expired at 20/,
    1,
  ],
  [
    "an authority that has expired beside one that has not",
    () => {
      makeAuthority({ folder: join(folder, "ca", "old"), nowMs: Date.now() - 11 * dayMs, days: 10 });
      const both = ["old/ca.pem", "ca.pem"].map((name) => readFileSync(file(name), "utf8"));
      writeFileSync(file("both.pem"), both.join(""));
      return tls({ authority: "both.pem" });
    },
    /^router\.yaml:6: warning: ca\/both\.pem expired at 20/,
    0,
  ],
];

test.each(cases)("check-config reports %s with its line", async (_what, prepare, line, code) => {
  const told = await check(write(prepare()));
  expect(told.lines[0]).toMatch(line);
  expect(told.code).toBe(code);
  // The further lines are only the verdicts.
  expect(told.lines.slice(1).filter((one) => !one.endsWith("is fine"))).toEqual(
    told.lines.slice(1).filter((one) => one.includes("is not signed by")),
  );
});

test(
  "a certificate counts as signed by the authority only if its file has the intermediate certificates",
  needs("openssl"),
  async () => {
    const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: ca, stdio: "ignore" });
    writeFileSync(file("between.ext"), "basicConstraints=critical,CA:true\nkeyUsage=keyCertSign\n");
    const sign = (name: string, by: string, ...more: string[]) => {
      openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", "csr");
      const signer = ["-CA", `${by}.pem`, "-CAkey", `${by}.key`, "-days", "90"];
      openssl("x509", "-req", "-in", "csr", ...signer, "-out", `${name}.pem`, ...more);
    };
    sign("between", "ca", "-extfile", "between.ext");
    sign("leaf", "between");
    chmodSync(file("leaf.key"), 0o600);
    const whole = write(tls({ cert: "chain.pem", key: "leaf.key" }));
    writeFileSync(
      file("chain.pem"),
      ["leaf.pem", "between.pem"].map((name) => readFileSync(file(name), "utf8")).join(""),
    );
    expect(await check(whole)).toMatchObject({ code: 0, lines: ["router.yaml is fine", "catalogue.yaml is fine"] });
    const alone = await check(write(tls({ cert: "leaf.pem", key: "leaf.key" })));
    expect(alone.lines[0]).toContain("ca/leaf.pem is not signed by ca/ca.pem");
  },
);

test("check-config reports the same with --json, and a missing file in one line", async () => {
  const { said, code } = await check(write(tls({ key: "nowhere.key" })), "--json");
  expect(JSON.parse(said)).toEqual({
    file: "router.yaml",
    mistakes: [{ line: 5, message: "ca/nowhere.key is not there" }],
    warnings: [],
    catalogue: { file: "catalogue.yaml", mistakes: [], warnings: [] },
  });
  expect(code).toBe(1);
  expect(await check(join(folder, "no.yaml"))).toMatchObject({
    code: 1,
    said: "",
    stderr: expect.stringMatching(
      /^weiche: cannot read .*no\.yaml: it does not exist \(ENOENT\). Check the path/,
    ) as string,
  });
});
