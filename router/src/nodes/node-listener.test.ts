import { Server } from "node:net";
import { expect, test, vi } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openNodeListener } from "./node-listener.ts";

test("a thousand nodes that dial at once wait in line: the kernel holds more connections than Node asks for by itself", async () => {
  const asked = vi.spyOn(Server.prototype, "listen");
  const parts = { alpn: "x", clock: systemClock, accept() {}, onTlsRefused() {} };
  const listener = await openNodeListener({ ...parts, listen: { host: "127.0.0.1", port: 0 } });
  expect(asked.mock.calls).toEqual([[0, "127.0.0.1", 4_096]]);
  await listener.close(0);
  asked.mockRestore();
});
