import type { audit as english } from "../en/audit.ts";
import type { Shape } from "../messages.ts";

export const audit: Shape<typeof english> = {
  lead: "Wer in diesem Konto was getan hat, das Neueste zuerst.",
  search: "Suche",
  from: "Von",
  to: "Bis",
  csv: "CSV",
  columns: { at: "Wann", actor: "Wer", action: "Was", object: "Woran", result: "Ergebnis", source: "Von wo" },
  operator: "Betreiber",
  nobody: "nicht angemeldet",
  done: "getan",
  empty: "Kein Eintrag passt dazu",
  emptyHint: "Andere Wörter oder andere Tage finden vielleicht einen.",
  cut: "Durchsucht wurden die neuesten 10.000 Einträge. Wählen Sie Tage, um ältere zu sehen; die CSV-Datei enthält alle.",
  clearFilter: "Alle Einträge zeigen",
  details: "Einzelheiten",
};
