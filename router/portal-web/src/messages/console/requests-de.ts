/** The texts of the console's page of requests in German. */
import type { Shape } from "../shape.ts";
import type { requests as english } from "./requests-en.ts";

export const requests: Shape<typeof english> = {
  lead: (days) => `Die beendeten Anfragen aller Router der letzten ${days}, die neuesten zuerst, ohne ihren Inhalt.`,
  id: "Anfrage-ID oder ihr Anfang",
  explain: "Erklären",
  explainOf: (time) => `Anfrage um ${time} erklären`,
  title: "Was mit der Anfrage geschah",
  malformed: "Eine Anfrage-ID beginnt mit mindestens 8 Zeichen aus 0–9, a–f und Bindestrichen.",
  running: "Sie läuft noch.",
  outcomes: {
    answered: "Der Client erhielt die ganze Antwort.",
    refused: "Sie wurde abgelehnt.",
    "client-gone": "Der Client ging vor dem Ende der Antwort.",
    broken: "Die Antwort brach ab, weil ein Knoten oder eine Engine ausfiel.",
    timeout: "Die Antwort wurde an der Zeitgrenze für Anfragen abgeschnitten.",
    stalled: "Der Client las die Antwort zu langsam und wurde getrennt.",
  },
  end: (status, reason, took) => `${status} ${reason} nach ${took}`,
  forgotten:
    "Dieser Router erinnert sich nicht an die Anfrage: Er wurde neu gestartet, ein anderer Router hat sie bedient, oder es ist lange her. Das Folgende steht in der Datenbank.",
  unknown: "Die Datenbank weiß sonst nichts davon.",
  notSent: "Sie wurde an keinen Knoten gesendet.",
  attempts: "Versuche",
  attempt: (place, after) => `${place}, gesendet nach ${after}`,
  waited: (wait, reason) => `Sie wartete ${wait} ${reason}.`,
  waits: { switch: "auf den Wechsel des Slots zu ihrem Modell", place: "auf einen freien Platz der Engine" },
  replied: (after) => `Der Knoten begann nach ${after} zu antworten.`,
  lost: (after) => `Der Knoten oder seine Verbindung ging nach ${after} verloren.`,
  refusedThere: (reason, after) => `Der Knoten lehnte sie nach ${after} ab: ${reason}.`,
  cost: "Verbrauchsdatensätze",
  costColumns: { node: "Knoten", outcome: "Ende", tokens: "Token ein / aus", credits: "Credits" },
  free: "Es gibt keinen Verbrauchsdatensatz: Sie kostete nichts, oder der Datensatz liegt noch auf dem Knoten.",
  noDatabase: "Die Kosten sind unbekannt: Die Datenbank antwortet nicht.",
  setAside: (node, reason) => `Ein Datensatz von ${node} wurde beiseitegelegt und wird niemandem berechnet: ${reason}.`,
  failures: "Ausfälle ihrer Engines, die Knoten jetzt melden",
};
