/**
 * A changelog with a future change, a change of some models, and a change of the service as a whole. For tests and
 * screenshots.
 */
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { stringify } from "yaml";

const dayMs = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * dayMs).toISOString();

const model = {
  ...{ id: "small-24b", category: "language", status: "Beta", contextTokens: 32_768 },
  factors: [{ validFrom: inDays(-300), factor: 2 }],
};
const changes = [
  {
    at: inDays(-40),
    text: { de: "Der Dienst beginnt mit der Beta-Phase.", en: "The service begins with its beta phase." },
  },
  {
    at: inDays(-3),
    text: {
      de: "Zwei Modelle lesen Werkzeuge strenger: Ein erzwungener Aufruf wird jetzt eingehalten.",
      en: "Two models read tools more strictly: a forced call is now kept to.",
    },
    models: ["small-24b", "coder-next"],
  },
  {
    at: inDays(12),
    text: { de: "Der Credit-Faktor sinkt von 2 auf 1,5.", en: "The credit factor goes down from 2 to 1.5." },
    models: ["small-24b"],
  },
];

export const someChanges = parseCatalogue(stringify({ models: [model], changes })).changes!;
