import type { changes as english } from "../en/changes.ts";
import type { Shape } from "../shape.ts";

export const changes: Shape<typeof english> = {
  lead: "Was sich an Modellen und Faktoren ändert. Jede Anfrage wird mit dem Faktor berechnet, der zu ihrer Zeit gilt.",
  ahead: "angekündigt",
  empty: "Noch keine Änderung",
  emptyHint: "Neue Modelle, auslaufende Modelle und neue Faktoren werden hier angekündigt.",
};
