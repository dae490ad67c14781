import { expect, test } from "vitest";
import type { LauncherSpec } from "../engine.ts";
import { checkSocketPath, commandHash, endpointOf, engineEnvironment, fillCommand } from "./engine-command.ts";

const launcher: LauncherSpec = { kind: "process", command: ["x"], env: { A: "1", B: "2" }, directory: "/d" };

test("port and socket are filled in wherever the command names them", () => {
  const command = ["serve", "--port", "{port}", "--metrics=127.0.0.1:{port}", "--host={socket}"];
  expect(fillCommand(command, { port: 41_000, socketPath: "/s" })).toEqual([
    ...["serve", "--port", "41000", "--metrics=127.0.0.1:41000", "--host=/s"],
  ]);
});

test("an engine is reached on loopback or by its socket", () => {
  expect(endpointOf({ port: 41_000 })).toEqual({ origin: "http://127.0.0.1:41000" });
  expect(endpointOf({ port: 41_000, socketPath: "/s" })).toEqual({ origin: "http://localhost", socketPath: "/s" });
});

test("a socket's path may have 107 bytes, not characters", () => {
  expect(checkSocketPath("/".repeat(107))).toHaveLength(107);
  expect(() => checkSocketPath(`/${"ü".repeat(54)}`)).toThrow(/109 bytes/);
});

test("an engine inherits only necessary variables of the agent's environment, and its own settings take precedence [S4.9]", () => {
  const own = { PATH: "/bin", HOME: "/h", LC_ALL: "C", AWS_SECRET_ACCESS_KEY: "s", HF_TOKEN: "t", NODE_OPTIONS: "--x" };
  expect(engineEnvironment(own, "/node/bin/node", { HOME: "/mine", HF_TOKEN: "given" })).toEqual({
    ...{ PATH: "/node/bin:/bin", HOME: "/mine", LC_ALL: "C" },
    ...{ CUDA_DEVICE_ORDER: "PCI_BUS_ID", HF_TOKEN: "given", VLLM_MAX_STOP_STRINGS: "64" },
    LLAMA_ARG_CACHE_RAM: "0",
  });
  expect(engineEnvironment(own, "/n", { VLLM_MAX_STOP_STRINGS: "128" })).toMatchObject({
    VLLM_MAX_STOP_STRINGS: "128",
  });
});

test("the hash changes with command, environment and directory, not with the order of variables", () => {
  expect(commandHash({ ...launcher, env: { B: "2", A: "1" } })).toBe(commandHash(launcher));
  const others = [
    { ...launcher, command: ["y"] },
    { ...launcher, env: { A: "1" } },
    { ...launcher, env: { A: "12", B: "" } },
    { ...launcher, directory: "/e" },
  ];
  for (const other of others) expect(commandHash(other)).not.toBe(commandHash(launcher));
});
