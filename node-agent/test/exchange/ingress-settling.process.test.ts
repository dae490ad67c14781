/** Which answers an agent remembers until their router has settled them. */
import { expect, test } from "vitest";
import { Rig, until } from "./ingress-rig.ts";
import { openStalled, whole } from "./stalled-stream.ts";

test.each([true, false])(
  "a finished answer is remembered before its last byte is sent (stream: %s)",
  async (stream) => {
    await using rig = await Rig.open(whole);
    const asked = rig.chat({ stream });
    let kept: number | undefined;
    asked.stream.once("end", () => (kept = rig.unsettled.length));
    expect(await asked.answer).toMatchObject({ status: 200 });
    expect(kept).toBe(1);
    expect(rig.unsettled).toEqual([["router-1", rig.outbox.records[0]!.requestId]]);
  },
);

test("an answer that its client ended is not remembered, because the router has already settled it", async () => {
  await using rig = await openStalled(1);
  const { stream, answer } = rig.chat({ stream: true });
  stream.once("data", () => stream.cancel());
  await answer;
  await until(() => rig.outbox.records.length > 0, "the record");
  expect(rig.outbox.records).toMatchObject([{ outcome: "client-ended" }]);
  expect(rig.unsettled).toEqual([]);
});
