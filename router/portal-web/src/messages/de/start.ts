import type { start as english } from "../en/start.ts";
import type { Shape } from "../shape.ts";

export const start: Shape<typeof english> = {
  lead: "Vier Schritte zur ersten Antwort eines Modells.",
  leadDone: "Ihre Programme erhalten Antworten.",
  package: "Ein Paket",
  packageDone: "Ihr Konto hat eines.",
  packageMissing: "Ihr Konto hat kein Paket. Ein Owner bestellt eines oder beginnt den kostenlosen Test.",
  key: "Ein Schlüssel",
  keyDone: (name) => `Sie haben einen: ${name}. Sein Wert wurde beim Anlegen gezeigt.`,
  keyMissing: "Der Schlüssel wird einmal gezeigt. Ihr Programm liest ihn aus der Umgebung.",
  call: "Der Aufruf",
  callLead: "Setzen Sie den Schlüssel als Umgebungsvariable, dann führen Sie dies aus:",
  noModel: "Zurzeit gibt es kein Modell, das Sie aufrufen dürfen.",
  answer: "Die Antwort",
  waiting: "Wartet auf Ihren ersten Aufruf …",
  answered: (tokens, credits) => `Sie ist da: ${tokens} Token, ${credits} Credits.`,
  answeredBefore: "Ihre Schlüssel wurden schon benutzt. Ein neuer Aufruf erscheint hier.",
  kinds: { curl: "curl", python: "Python", node: "Node.js", langchain: "LangChain", settings: "Agenten, Editoren" },
  settingsHint: "Programme mit eigenen Feldern dafür nehmen dasselbe: Basis-URL, API-Schlüssel, Modell.",
  kindsLabel: "Sprache des Beispiels",
  install: (command) => `Einmal vorher: ${command}`,
};
