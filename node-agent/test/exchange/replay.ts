/** Replays an engine's recorded answer to its request. */
import { expect } from "vitest";
import type { NodePath } from "@weiche/shared/node-protocol.ts";
import type { DialectName } from "../../src/engines/engine.ts";
import { model, Rig } from "./ingress-rig.ts";
import { respond, respondEvents } from "./scripted-engine.ts";
import { readRecording } from "./recordings.ts";

/** `more` replaces fields of the recorded request. */
export async function replay(name: string, more: object = {}, dialect: DialectName = "llama-server") {
  const recording = readRecording(name);
  await using rig = await Rig.open(
    (socket) => {
      if (recording.body.startsWith("data:")) respondEvents(socket, recording.body);
      else respond(socket, recording.status, recording.body);
    },
    // With this setting everything that was recorded may be shown.
    { dialect, cachePrompts: "shared" },
  );
  const { answer, requestId } = rig.send(recording.path as NodePath, { ...recording.request, model, ...more });
  const got = await answer;
  await rig.quiet();
  expect(rig.bugs).toEqual([]);
  const { faults, shortfalls, outbox, engine } = rig;
  return { ...got, requestId, record: outbox.records[0], asked: engine.saw[0]?.body, faults, shortfalls };
}
