import { describe, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { newsOf, type AnnouncedModel } from "./notices-catalogue.ts";

const nowMs = Date.parse("2026-11-20T12:00:00Z");
const model = asId<ModelId>("coder-next");

/** `factors`: days from now, and the factor in thousandths. */
function at(status: AnnouncedModel["status"], ...factors: [number, number][]): AnnouncedModel {
  return {
    status,
    factors: factors.map(([days, factor]) => ({
      validFromMs: nowMs + days * 86_400_000,
      factor: millicredits(BigInt(factor)),
    })),
  };
}

const facts = (before: AnnouncedModel | undefined, after: AnnouncedModel | undefined) =>
  newsOf(model, before, after, nowMs).map(({ kind, facts: { model: _model, ...rest } }) => ({ kind, ...rest }));

describe("news of a model", () => {
  test.each([
    ["an unchanged model is not news", at("Beta", [-9, 1000]), at("Beta", [-9, 1000]), []],
    [
      "a new status is news",
      at("Beta", [-9, 1000]),
      at("Verfügbar", [-9, 1000]),
      [{ kind: "model-status", from: "Beta", to: "Verfügbar" }],
    ],
    [
      "a model that is new in the catalogue is news",
      undefined,
      at("Demnächst", [-9, 1000]),
      [{ kind: "model-status", from: null, to: "Demnächst" }],
    ],
    [
      "a removed model is news",
      at("Auslaufend", [-9, 1000]),
      undefined,
      [{ kind: "model-status", from: "Auslaufend", to: null }],
    ],
    [
      "a new current factor is news",
      at("Beta", [-9, 1000]),
      at("Beta", [-9, 1000], [-1, 1500]),
      [{ kind: "model-factor", from: "1.000", to: "1.500", coming: [] }],
    ],
    [
      "a future factor is news",
      at("Beta", [-9, 1000]),
      at("Beta", [-9, 1000], [5, 2000]),
      [
        {
          kind: "model-factor",
          from: "1.000",
          to: "1.000",
          coming: [{ validFrom: "2026-11-25T12:00:00Z", factor: "2.000" }],
        },
      ],
    ],
    [
      "a future factor that is postponed is news",
      at("Beta", [-9, 1000], [5, 2000]),
      at("Beta", [-9, 1000], [6, 2000]),
      [
        {
          kind: "model-factor",
          from: "1.000",
          to: "1.000",
          coming: [{ validFrom: "2026-11-26T12:00:00Z", factor: "2.000" }],
        },
      ],
    ],
    [
      "a future factor that is withdrawn is news",
      at("Beta", [-9, 1000], [5, 2000]),
      at("Beta", [-9, 1000]),
      [{ kind: "model-factor", from: "1.000", to: "1.000", coming: [] }],
    ],
    [
      "an announced factor that takes effect is not news",
      at("Beta", [-9, 1000], [-0.1, 2000]),
      at("Beta", [-9, 1000], [-0.1, 2000]),
      [],
    ],
    ["a changed past factor is not news", at("Beta", [-9, 1000], [-5, 2000]), at("Beta", [-5, 2000]), []],
    [
      "a new status and a new factor are two news",
      at("Beta", [-9, 1000]),
      at("Auslaufend", [-9, 500]),
      [
        { kind: "model-status", from: "Beta", to: "Auslaufend" },
        { kind: "model-factor", from: "1.000", to: "0.500", coming: [] },
      ],
    ],
  ])("%s", (_name, before, after, expected) => {
    expect(facts(before, after)).toEqual(expected);
  });
});
