import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { plainJson, plainText } from "./plain-text.ts";
import { formatTable } from "./table.ts";

/** Line breaks, terminal sequences (with ESC and C1), and characters that change the direction of text. */
const hostile = 'a\r\nb\u001b[2J\u001b]0;x\u0007\u0085\u009b31m\u2028\u2029\u202e\u2066\u200f\u061c"\\z\u007f';
const steering = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;

test("a text keeps its letters, but no control characters", () => {
  expect(plainText(hostile)).not.toMatch(steering);
  expect(plainText("Größe 日本 🙂 –")).toBe("Größe 日本 🙂 –");
});

test("a text of several lines becomes one, with a space for each break", () => {
  expect(plainText("cannot find x\r\nneeded by y\tand z")).toBe("cannot find x needed by y and z");
});

test("JSON keeps its meaning, and has no control characters except its own line ends [E9]", () => {
  const value = { [hostile]: [hostile], n: 1 };
  for (const json of [plainJson(JSON.stringify(value)), plainJson(JSON.stringify(value, null, 2))]) {
    expect(JSON.parse(json)).toEqual(value);
    expect(json.replaceAll("\n", "")).not.toMatch(steering);
  }
});

test("a table has one line per row, whatever its cells contain [E9]", () => {
  const lines = formatTable(
    ["A", "B"],
    [
      [hostile, 1],
      ["x\ny", 2],
    ],
  ).split("\n");
  expect(lines.length).toBe(4);
  expect(lines.join("")).not.toMatch(steering);
});

test("a log has one line per entry, whatever its texts, names and errors contain [E9]", () => {
  const script = `
    import { createLog, describeError } from ${JSON.stringify(join(import.meta.dirname, "log.ts"))};
    const hostile = ${JSON.stringify(hostile)};
    const log = createLog("test", "debug");
    log.info({ model: hostile, [hostile]: { deep: [hostile] } }, hostile);
    log.error({ ...describeError(new Error(hostile)), err: new Error(hostile) }, "error");
    log.child({ node: hostile }).warn("child");
  `;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(stderr).toBe("");
  const lines = stdout.trimEnd().split("\n");
  expect(lines.length).toBe(3);
  expect(lines.join("")).not.toMatch(steering);
  expect(JSON.parse(lines[0]!)).toMatchObject({ model: hostile, msg: hostile });
});
