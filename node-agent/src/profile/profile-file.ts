/** The file of a profile, as `weiche-agent profile` writes it and `weiche simulate` reads it. */
import { Type, type Static } from "typebox";

const closed = { additionalProperties: false } as const;

function measured(description: string, exclusiveMinimum?: 0) {
  return Type.Number({ ...(exclusiveMinimum === undefined ? { minimum: 0 } : { exclusiveMinimum }), description });
}

export const profileSchema = Type.Object(
  {
    model: Type.String({ minLength: 1, description: "the model's id" }),
    engine: Type.String({ minLength: 1, description: "the kind of engine, the dialect of agent.yaml" }),
    version: Type.Optional(Type.String({ description: "the engine's version", absent: "the engine reports none" })),
    gpus: Type.Array(Type.String(), { description: "the names of the slot's GPUs. Empty if none is known" }),
    agent: Type.String({ description: "the version of the agent that measured" }),
    measured: Type.String({ description: "when the measurement ended" }),
    places: Type.Integer({ minimum: 1, description: "most answers at once, `maxConcurrent` in agent.yaml" }),
    startSeconds: Type.Optional(measured("time of the engine's start, until its probe has answered")),
    stopSeconds: Type.Optional(measured("time until the GPU memory is free after the engine stops or falls asleep")),
    wakeSeconds: Type.Optional(measured("time to wake. Without it, the engine is stopped")),
    step: Type.Object(
      {
        baseMs: measured("milliseconds of a step in any case"),
        perRunningMs: measured("milliseconds for each running answer"),
        perThousandTokensMs: measured("milliseconds for each thousand tokens in the contexts of running answers"),
      },
      closed,
    ),
    prefillTokensPerSecond: Type.Optional(measured("tokens of prompts that the engine reads per second", 0)),
    points: Type.Array(
      Type.Object(
        {
          running: Type.Integer({ minimum: 1, description: "answers at once" }),
          contextTokens: measured("tokens in the contexts of all answers"),
          stepMs: measured("milliseconds of a step"),
        },
        closed,
      ),
      { description: "the measurements to which `step` is fitted" },
    ),
  },
  closed,
);

export type EngineProfile = Static<typeof profileSchema>;
