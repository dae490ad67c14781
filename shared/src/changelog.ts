/** The changelog for the customers of a service: what changes or has changed about its models and prices. Part of the catalogue's file. */
import { Type, type Static } from "typebox";
import type { Finding } from "./files/config-file.ts";
import { asId, type ModelId } from "./ids.ts";

export interface ServiceChange {
  /** When it holds; may lie ahead. */
  readonly atMs: number;
  readonly text: { readonly de: string; readonly en: string };
  /** The models that it is about. None: the service as a whole. A model need not be in the catalogue: it may be gone by now. */
  readonly models: readonly ModelId[];
}

const closed = { additionalProperties: false } as const;

function text(description: string) {
  return Type.String({ minLength: 1, maxLength: 2_000, description });
}

/** The portal shows all of them at once. */
export const changesMax = 500;

export const changesSchema = Type.Array(
  Type.Object(
    {
      at: Type.String({
        description: "when it holds, with its offset, such as `2026-12-01T00:00:00+01:00`; may lie ahead",
      }),
      text: Type.Object({ de: text("the announcement in German"), en: text("the same in English") }, closed),
      models: Type.Optional(
        Type.Array(Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" }), {
          uniqueItems: true,
          default: [],
          description:
            "the models that it is about; none: the service as a whole. A model that is gone by now may be named",
        }),
      ),
    },
    closed,
  ),
  {
    maxItems: changesMax,
    default: [],
    description: "the changelog that customers read in the portal; at most 500 entries",
  },
);
type RawChanges = Static<typeof changesSchema>;

/** Finds mistakes that a schema cannot express. Paths begin at the list. */
export function* judgeChanges(changes: RawChanges): Generator<Finding> {
  for (const [index, { at, text: texts }] of changes.entries()) {
    if (instantOf(at) === undefined)
      yield [[index, "at"], `"${at}" is not an instant such as 2026-12-01T00:00:00+01:00`];
    for (const language of ["de", "en"] as const)
      if (texts[language].trim() === "") yield [[index, "text", language], "must say something"];
  }
}

/** The youngest first. Throws if `judgeChanges` finds something. */
export function readChanges(changes: RawChanges): readonly ServiceChange[] {
  return changes
    .map(({ at, text: { de, en }, models = [] }) => ({
      atMs: instantOf(at)!,
      text: { de: de.trim(), en: en.trim() },
      models: models.map((model) => asId<ModelId>(model)),
    }))
    .toSorted((a, b) => b.atMs - a.atMs);
}

/** With its offset: a time without one would depend on where the router runs. */
function instantOf(at: string): number | undefined {
  try {
    return Temporal.Instant.from(at).epochMilliseconds;
  } catch {
    return undefined;
  }
}
