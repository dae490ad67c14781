/** The changelog for customers: past and announced changes of models and prices. It is part of the catalogue's file. */
import { Type, type Static } from "typebox";
import type { Finding } from "./files/config-file.ts";
import { asId, type ModelId } from "./ids.ts";

export interface ServiceChange {
  /** When the change takes effect. It may be in the future. */
  readonly atMs: number;
  readonly text: { readonly de: string; readonly en: string };
  /**
   * The models that the change is about. If empty, it is about the whole service. Models may have left the catalogue.
   */
  readonly models: readonly ModelId[];
}

const closed = { additionalProperties: false } as const;

function text(description: string) {
  return Type.String({ minLength: 1, maxLength: 2_000, description });
}

/** Bounded, because the portal shows all changes at once. */
const changesMax = 500;

export const changesSchema = Type.Array(
  Type.Object(
    {
      at: Type.String({
        description:
          "when the change takes effect, with an offset, such as `2026-12-01T00:00:00+01:00`. It may be in the future",
      }),
      text: Type.Object({ de: text("the announcement in German"), en: text("the same in English") }, closed),
      models: Type.Array(Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" }), {
        uniqueItems: true,
        default: [],
        description:
          "the models that the change is about. If empty, it is about the whole service. Models may have left the catalogue",
      }),
    },
    closed,
  ),
  {
    maxItems: changesMax,
    default: [],
    description: "the changelog that customers read in the portal, at most 500 entries",
  },
);
type RawChanges = Static<typeof changesSchema>;

/** Finds mistakes that a schema cannot express. Paths begin at the list. */
export function* judgeChanges(changes: RawChanges): Generator<Finding> {
  for (const [index, { at, text: texts }] of changes.entries()) {
    if (instantOf(at) === undefined)
      yield [[index, "at"], `"${at}" is not an instant such as 2026-12-01T00:00:00+01:00`];
    for (const language of ["de", "en"] as const)
      if (texts[language].trim() === "") yield [[index, "text", language], "must not be empty"];
  }
}

/** Reads the changes, newest first. Throws if `judgeChanges` finds a mistake. */
export function readChanges(changes: RawChanges): readonly ServiceChange[] {
  return changes
    .map(({ at, text: { de, en }, models }) => ({
      atMs: instantOf(at)!,
      text: { de: de.trim(), en: en.trim() },
      models: models.map((model) => asId<ModelId>(model)),
    }))
    .toSorted((a, b) => b.atMs - a.atMs);
}

/** Reads an instant. It must have an offset, because otherwise it would depend on the router's time zone. */
function instantOf(at: string): number | undefined {
  try {
    return Temporal.Instant.from(at).epochMilliseconds;
  } catch {
    return undefined;
  }
}
