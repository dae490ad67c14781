import { describe, expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { newsOf, type AnnouncedModel } from "./notices-catalogue.ts";

const nowMs = Date.parse("2026-11-20T12:00:00Z");
const model = asId<ModelId>("coder-next");

/** Factors as [days from now, thousandths]. */
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
    ["nothing changed", at("Beta", [-9, 1000]), at("Beta", [-9, 1000]), []],
    [
      "status",
      at("Beta", [-9, 1000]),
      at("Verfügbar", [-9, 1000]),
      [{ kind: "model-status", from: "Beta", to: "Verfügbar" }],
    ],
    [
      "new in the catalogue",
      undefined,
      at("Demnächst", [-9, 1000]),
      [{ kind: "model-status", from: null, to: "Demnächst" }],
    ],
    ["gone", at("Auslaufend", [-9, 1000]), undefined, [{ kind: "model-status", from: "Auslaufend", to: null }]],
    [
      "factor of now",
      at("Beta", [-9, 1000]),
      at("Beta", [-9, 1000], [-1, 1500]),
      [{ kind: "model-factor", from: "1.000", to: "1.500", coming: [] }],
    ],
    [
      "a factor to come",
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
      "a factor to come that comes later",
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
      "a factor to come that is taken back",
      at("Beta", [-9, 1000], [5, 2000]),
      at("Beta", [-9, 1000]),
      [{ kind: "model-factor", from: "1.000", to: "1.000", coming: [] }],
    ],
    [
      "nothing: a factor that was announced has come",
      at("Beta", [-9, 1000], [-0.1, 2000]),
      at("Beta", [-9, 1000], [-0.1, 2000]),
      [],
    ],
    ["nothing: the past is written differently", at("Beta", [-9, 1000], [-5, 2000]), at("Beta", [-5, 2000]), []],
    [
      "both",
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
