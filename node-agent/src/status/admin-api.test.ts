/** The status codes of the agent's admin socket. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { askSocket } from "@weiche/shared/program/admin-socket.ts";
import { LogLevelSwitch } from "@weiche/shared/program/log-level.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { openAdminApi } from "./admin-api.ts";

test("an internal failure is answered with 500, a malformed request with 400, an unknown model with 404", async () => {
  const socket = join(temporaryDirectory(), "admin.sock");
  await using opened = new AsyncDisposableStack();
  opened.use(
    await openAdminApi(socket, {
      status: () => Promise.reject(new Error("the disk is gone")),
      prewarm: (model) => model === "m",
      setMaintenance() {
        throw new Error("the disk is gone");
      },
      beginProfile: (model, whileServing) => (whileServing ? undefined : `${model} is busy`),
      profile: () => ({ state: "none" }),
      stopProfile() {},
      logLevel: new LogLevelSwitch({ level: "info" }, new VirtualClock()),
    }),
  );
  const status = async (method: "GET" | "POST", path: string, body?: unknown) =>
    (await askSocket(socket, method, path, body)).status;
  expect(await status("GET", "/status")).toBe(500);
  expect(await status("POST", "/maintenance", { on: true })).toBe(500);
  expect(await status("POST", "/maintenance", { on: "yes" })).toBe(400);
  expect(await status("POST", "/prewarm", null)).toBe(400);
  expect(await status("POST", "/prewarm", { model: "m" })).toBe(200);
  expect(await status("POST", "/prewarm", { model: "n" })).toBe(404);
  expect(await status("POST", "/profile", {})).toBe(400);
  expect(await status("POST", "/profile", { model: "m" })).toBe(409);
  expect(await status("POST", "/profile", { model: "m", whileServing: true })).toBe(200);
  expect((await askSocket(socket, "GET", "/profile")).body).toEqual({ state: "none" });
  expect(await status("POST", "/profile/stop")).toBe(200);
  expect(await status("POST", "/log", { level: "loud", seconds: 1 })).toBe(400);
  for (const seconds of [0, 86_401, "5"]) expect(await status("POST", "/log", { level: "debug", seconds })).toBe(400);
  const then = { level: "info", seconds: 300 };
  const asked = await askSocket(socket, "POST", "/log", { level: "debug", seconds: 300 });
  expect(asked.body).toEqual({ level: "debug", then });
  expect((await askSocket(socket, "GET", "/log")).body).toEqual({ level: "debug", then });
});
