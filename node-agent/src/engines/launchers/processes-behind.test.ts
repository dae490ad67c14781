import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { processesBehind } from "./processes-behind.ts";

test.runIf(process.platform === "linux")(
  "the processes of a URL are its listener and those that it started, even in another group",
  async () => {
    const script = `
    const child = require("node:child_process").spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
    const server = require("node:http").createServer().listen(0, "127.0.0.1", () => console.log(server.address().port, child.pid));`;
    const engine = spawn(process.execPath, ["-e", script], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
    const [said] = (await once(engine.stdout, "data")) as [Buffer];
    const [port, child] = said.toString().trim().split(" ").map(Number) as [number, number];
    try {
      const behind = await processesBehind(`http://127.0.0.1:${port}`);
      expect([...behind!].toSorted((a, b) => a - b)).toEqual([engine.pid!, child].toSorted((a, b) => a - b));
    } finally {
      engine.kill("SIGKILL");
      process.kill(child, "SIGKILL");
    }
    await once(engine, "exit");
    expect(await processesBehind(`http://127.0.0.1:${port}`)).toBeUndefined();
  },
);

describe("on a host with many processes", () => {
  let proc: string;
  beforeEach(() => {
    proc = temporaryDirectory();
    mkdirSync(join(proc, "net"));
  });

  function listens(port: number, uid: number, inode: number, table = "tcp"): void {
    const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    const line = `0: ${local} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 ${uid} 0 ${inode} 1 0 100 0 0 10 0`;
    writeFileSync(join(proc, "net", table), `  sl  local_address rem_address   st\n   ${line}\n`);
  }

  function lives(pid: number, parent: number, group: number, socket?: number): void {
    mkdirSync(join(proc, String(pid), "fd"), { recursive: true });
    writeFileSync(join(proc, String(pid), "stat"), `${pid} (a (b) c) S ${parent} ${group} ${group} 0`);
    if (socket !== undefined) symlinkSync(`socket:[${socket}]`, join(proc, String(pid), "fd", "7"));
  }

  test("its group and all descendants belong to it, and its parent and others do not", async () => {
    listens(8000, 0, 4711, "tcp6");
    lives(1, 0, 1);
    lives(10, 1, 10, 4711);
    lives(11, 10, 10);
    lives(12, 11, 12);
    lives(13, 1, 10);
    lives(20, 1, 20, 4712);
    expect(await processesBehind("http://[::1]:8000/v1", proc)).toEqual(new Set([10, 11, 12, 13]));
  });

  test("if its listener cannot be inspected, every process of its user may belong to it", async () => {
    listens(8000, userInfo().uid, 4711);
    lives(10, 1, 10);
    lives(20, 1, 20);
    expect(await processesBehind("http://127.0.0.1:8000", proc)).toEqual(new Set([10, 20]));
  });

  test("a listener at the same port of another host is not a process of this host", async () => {
    listens(8000, 0, 4711);
    lives(10, 1, 10, 4711);
    expect(await processesBehind("http://gpu-2:8000", proc)).toBeUndefined();
  });

  test("without a listener, or a visible process of its user, the processes are unknown", async () => {
    lives(10, 1, 10, 4711);
    listens(8001, 0, 4711);
    expect(await processesBehind("http://127.0.0.1:8000", proc)).toBeUndefined();
    listens(8000, userInfo().uid + 1, 4712);
    expect(await processesBehind("http://127.0.0.1:8000", proc)).toBeUndefined();
  });
});
