import type { notices as english } from "../en/notices.ts";
import type { Shape } from "../shape.ts";

export const notices: Shape<typeof english> = {
  lead: (unread) => `${unread} ungelesen.`,
  leadNone: "Sie haben alles gelesen.",
  readAll: "Alle als gelesen markieren",
  read: "Als gelesen markieren",
  unread: "ungelesen",
  empty: "Noch keine Hinweise",
  emptyHint: "Hier erfahren Sie von erreichten Limits, ablaufenden Schlüsseln und Änderungen an Modellen.",
  named: (name) => `„${name}“`,
  quota: (percent, name, end) => `${percent} der Credits von ${name} sind verbraucht. Der Zeitraum endet am ${end}.`,
  keyLimit: (key, limit, end) =>
    `Schlüssel ${key} hat seine ${limit} Credits verbraucht. Er ist gesperrt, bis der Zeitraum am ${end} endet.`,
  userLimit: (user, limit, end) =>
    `${user} hat alle ${limit} Credits verbraucht. Die Schlüssel dieser Person erhalten 401, bis der Zeitraum am ${end} endet.`,
  keyExpiring: (key, at) => `Schlüssel ${key} gilt bis ${at}.`,
  trialEnding: (at) => `Ihr Test endet am ${at}. Danach wird das Paket berechnet, wenn Sie nicht kündigen.`,
  terms: (name, at, terms) => `${name} ab ${at}: ${terms}. Laufende Zeiträume bleiben, wie sie sind.`,
  termsStay: (name, at, terms) => `${name} bleibt, wie es ist: ${terms}. Die Ankündigung für ${at} entfällt.`,
  termsText: (price, credits, perMinute, parallel, hasSupport) =>
    `${price} netto im Monat, ${credits} Credits, ${perMinute} Anfragen je Minute, ${parallel} gleichzeitig, ${hasSupport ? "mit" : "ohne"} E-Mail-Support`,
  modelNew: (model, status) => `Das Modell ${model} ist da: ${status}.`,
  modelGone: (model) => `Das Modell ${model} gibt es nicht mehr.`,
  modelStatus: (model, from, to) => `Das Modell ${model} wechselte von ${from} zu ${to}.`,
  factor: (model, from, to) => `Der Credit-Faktor von ${model} wechselte von ${from} zu ${to}.`,
  factorComing: (model, factor, at) => `Ab ${at} ist der Credit-Faktor von ${model} ${factor}.`,
  factorStays: (model, factor) =>
    `Der Credit-Faktor von ${model} bleibt ${factor}: Die angekündigte Änderung entfällt.`,
};
