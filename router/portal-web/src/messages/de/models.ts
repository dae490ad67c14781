import { counted } from "../counted.ts";
import type { models as english } from "../en/models.ts";
import type { Shape } from "../shape.ts";

export const models: Shape<typeof english> = {
  lead: (usable, total) => `Sie können ${usable} von ${counted(total, "Modell", "Modellen")} aufrufen.`,
  columns: {
    id: "Modell",
    status: "Status",
    factor: "Credits je Token",
    context: "Kontext (Token)",
    abilities: "Fähigkeiten",
    state: "Jetzt",
    actions: "Aktionen",
  },
  categories: { language: "Sprache", coding: "Programmieren", embeddings: "Embeddings" },
  statuses: { Beta: "Beta", Verfügbar: "Verfügbar", Auslaufend: "Auslaufend", Demnächst: "Demnächst" },
  states: {
    active: "aktiv",
    switching: "wird aktiviert",
    asleep: "erwacht bei der ersten Anfrage",
    unavailable: "nicht erreichbar",
  },
  unusable: {
    announced: "noch nicht nutzbar",
    "not-allowed": "für Sie nicht erlaubt",
    "no-package": "kein Paket",
    "quota-exhausted": "das Paket ist verbraucht",
    "user-limit": "Ihr Limit ist erreicht",
    maintenance: "Wartung",
    "no-node": "zurzeit kein Server dafür",
  },
  provisional: "vorläufig",
  coming: (factor, at) => `${factor} ab ${at}`,
  tools: { enforced: "Werkzeuge", auto: "Werkzeuge (nach eigener Wahl)" },
  images: (count) => `bis ${counted(count, "Bild", "Bilder")}`,
  answers: (count) => `bis ${counted(count, "Antwort", "Antworten")} je Anfrage (n)`,
  dimensions: (min, max) => `${min} bis ${max} Dimensionen`,
  reasoning: { optional: "Denken, zuschaltbar", "default-on": "Denken, abschaltbar", unavailable: "" },
  efforts: (efforts) => `Stufen: ${efforts}`,
  tryIt: "Ausprobieren",
  tryModel: (id) => `Ausprobieren: ${id}`,
  empty: "Noch kein Modell",
  emptyHint: "Der Betreiber hat noch keines aufgeführt.",
};
