import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./lock-file.ts";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

test.each(["router/bin/weiche.js", "node-agent/bin/weiche-agent.js", "router/src/main.ts", "node-agent/src/main.ts"])(
  "%s --version says the version and nothing else",
  (program) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, program), "--version"], {
      encoding: "utf8",
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: `${version}\n`, stderr: "" });
  },
);
