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
  quota: (percent, until) => `${percent} Ihrer Credits sind verbraucht; neue gibt es am ${until}.`,
  usedUp: (until) => `Ihre Credits sind verbraucht; Aufrufe erhalten 429 bis ${until}.`,
  ownUsedUp: (until) => `Ihr eigenes Limit ist verbraucht; Ihre Aufrufe erhalten 401 bis ${until}.`,
  askOwner: "Bitten Sie einen Owner Ihres Kontos, hochzustufen.",
  askAdmin: "Bitten Sie einen Admin oder Owner Ihres Kontos, es zu erhöhen.",
  keyLimit: (key, limit, until) =>
    `Schlüssel ${key} hat seine ${limit} Credits verbraucht; Aufrufe damit erhalten 401 bis ${until}.`,
  userLimit: (user, limit, until) =>
    `${user} hat alle ${limit} Credits verbraucht; Aufrufe dieser Person erhalten 401 bis ${until}.`,
  keyExpiring: (key, at) => `Schlüssel ${key} gilt bis ${at}; danach erhalten Aufrufe damit 401.`,
  trialEnding: (at) => `Ihr Test endet am ${at}. Wenn Sie nicht gekündigt haben, kostet das Paket danach Geld.`,
  packageEnding: (name, at) => `${name} ist gekündigt und endet am ${at}; danach erhalten Aufrufe 403.`,
  actions: {
    upgrade: "Hochstufen",
    raise: "Limit erhöhen",
    regenerate: "Neu erzeugen",
    package: "Paket",
    changes: "Änderungen",
  },
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
