import { expect, test } from "vitest";
import { readAnswerRecord } from "./answer-record.ts";

test("an answer's record contains what its request waited for and the estimate of that wait", () => {
  expect(readAnswerRecord('[200,"events",0,"switch 5200",4800]')).toEqual({
    ...{ status: 200, kind: "events", retryAfterSeconds: 0, waited: "switch 5200", estimatedMs: 4_800 },
  });
});

test.each(['[200,"events",0,"place 80"]', '[200,"events",0,"place 80",0]', '[200,"events",0,"place 80","soon"]'])(
  "an answer's record is read even if its estimate is missing or no count: %s",
  (text) => expect(readAnswerRecord(text)).toMatchObject({ waited: "place 80", estimatedMs: undefined }),
);
