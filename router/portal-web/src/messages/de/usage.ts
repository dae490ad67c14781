import { counted } from "../counted.ts";
import type { usage as english } from "../en/usage.ts";
import type { Shape } from "../messages.ts";

export const usage: Shape<typeof english> = {
  lead: (credits, requests, input, output) =>
    `${credits} Credits · ${counted(requests, "Anfrage", "Anfragen")} · ${input} Token hinein · ${output} heraus`,
  period: "Tage",
  periods: {
    period: "dieser Abrechnungszeitraum",
    "7": "die letzten 7 Tage",
    "30": "die letzten 30 Tage",
    "90": "die letzten 90 Tage",
    own: "andere Tage",
  },
  from: "Von",
  to: "Bis",
  by: "Nach",
  parts: { model: "Modell", key: "Schlüssel", user: "Benutzer", day: "Tag" },
  csv: "CSV",
  csvHint: "Lädt alle Zeilen dessen, was gezeigt wird",
  columns: {
    day: "Tag",
    model: "Modell",
    key: "Schlüssel",
    user: "Benutzer",
    requests: "Anfragen",
    promptTokens: "Token hinein",
    completionTokens: "Token heraus",
    credits: "Credits",
    share: "Anteil",
  },
  only: "Beschränkt auf",
  showOnly: "Nur die Tage davon zeigen",
  removeOnly: (what) => `Beschränkung aufheben: ${what}`,
  playground: "Playground",
  deletedUser: "gelöschter Benutzer",
  total: "Summe",
  chart: "Credits je Tag",
  chartHint: "Pfeiltasten gehen von Tag zu Tag; die Tabelle nach Tagen sagt dasselbe.",
  bar: (day, credits) => `${day}: ${credits} Credits`,
  others: "andere",
  asOf: (time) => `Stand ${time}; eine Anfrage erscheint etwa zwei Sekunden nach ihrem Ende`,
  estimated: (tokens: string) =>
    `Davon sind ${tokens} Token geschätzt: Das Modell hatte noch keine Zahl gemeldet, als der Client ging. Die CSV-Datei enthält die Zahl je Zeile.`,
  empty: "Nichts in diesen Tagen",
  emptyHint: "Andere Tage haben vielleicht etwas. Gab es noch keine Anfrage, machen Sie die erste.",
  periodSince: (start) =>
    `Der Zeitraum begann am ${start}. Was am selben Tag davor verbraucht wurde, gehört zum vorigen Zeitraum; andere Tage werden ganz gezeigt.`,
  range: (from, to) => `${from} bis ${to}`,
};
