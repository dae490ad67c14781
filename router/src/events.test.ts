import { pino } from "pino";
import { expect, test } from "vitest";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { FewLines, linesMax } from "@weiche/shared/program/few-lines.ts";
import type { Log } from "@weiche/shared/program/log.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createApiEvents, createEvents, type RouterEvents } from "./events.ts";
import { createMetrics } from "./metrics.ts";

const node = asId<NodeId>("gpu-1");
const unreadable = { reason: "model is malformed", record: {} };
const repeated: [name: string, event: (events: RouterEvents) => void][] = [
  ["nodeLinked", (events) => events.nodeLinked(node, "b", "0.1.0")],
  ["nodeUnlinked", (events) => events.nodeUnlinked(node, "ended")],
  ["nodeRefused", (events) => events.nodeRefused("tls", "no certificate", "192.0.2.1")],
  ["dataConnectionRefused", (events) => events.dataConnectionRefused("tls", "no certificate", "192.0.2.1")],
  ["hostingIgnored", (events) => events.hostingIgnored(node, Array<never>(1_000).fill(asId("m") as never))],
  ["reportUnreadable", (events) => events.reportUnreadable(node, 1)],
  ["usageRejected", (events) => events.usageRejected(node, Array<typeof unreadable>(1_000).fill(unreadable))],
  ["usageNotRecorded", (events) => events.usageNotRecorded(node, 1_000, new Error("no database"))],
  ["usageSetAside", (events) => events.usageSetAside(node, "wrong-grant", 1_000)],
];

test.each(repeated)(
  "%s a thousand times in a minute writes a few short lines, and how many were left out [D10]",
  (_name, event) => {
    const clock = new VirtualClock();
    const lines: string[] = [];
    const log = pino({ level: "info" }, { write: (line) => void lines.push(line) });
    const events = createEvents(
      log,
      createMetrics(() => 0),
      new FewLines(clock),
    );
    for (let count = 0; count < 1_000; count++) event(events);
    clock.advance(60_000);
    expect(lines).toHaveLength(linesMax);
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ leftOut: 1_000 - linesMax });
    for (const line of lines) expect(line.length).toBeLessThan(1_000);
  },
);

test("a proxy whose entries contain no address is logged once, and at most 16 proxies are logged", () => {
  const lines: unknown[] = [];
  const log = { warn: (fields: object) => lines.push(fields) } as unknown as Log;
  const events = createApiEvents(
    log,
    createMetrics(() => 0),
    { count() {} },
    { remember() {} },
  );
  for (let n = 0; n < 100; n++) events.forwardedUnread("10.0.0.1", ` ${"x".repeat(5_000)}`);
  expect(lines).toEqual([{ proxy: "10.0.0.1", entry: "x".repeat(64) }]);
  for (let n = 0; n < 100; n++) events.forwardedUnread(`10.0.1.${n}`, "unknown");
  expect(lines).toHaveLength(16);
});
