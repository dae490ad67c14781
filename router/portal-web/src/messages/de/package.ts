import type { packages as english } from "../en/package.ts";
import type { Shape } from "../messages.ts";

export const packages: Shape<typeof english> = {
  leads: {
    active: (name, price, end) => `${name}, ${price} netto im Monat; der nächste Zeitraum beginnt am ${end}.`,
    trial: (name, price, end) =>
      `${name}-Test bis ${end}; danach ${price} netto im Monat, wenn er nicht gekündigt wird.`,
    none: "Es gibt kein Paket: Die API antwortet mit 403 no_package.",
  },
  pending: {
    cancellation: (at) => `Gekündigt zum ${at}. Danach antwortet die API mit 403 no_package.`,
    downgrade: (name, at) => `Wechselt am ${at} zu ${name}.`,
    withdraw: "Zurücknehmen",
  },
  current: "aktuell",
  month: "im Monat, netto",
  credits: (count) => `${count} Credits`,
  perMinute: (count) => `${count} Anfragen je Minute`,
  parallel: (count) => `${count} gleichzeitig`,
  coming: (at, terms) => `Ab dem Zeitraum, der am ${at} oder später beginnt: ${terms}`,
  freeTrial: (days) => `${days} kostenlos testen`,
  support: "E-Mail-Support",
  noSupport: "Kein E-Mail-Support",
  used: (used, quota) => `${used} von ${quota} Credits in diesem Zeitraum verbraucht`,
  actions: {
    trial: "Test beginnen",
    order: "Bestellen",
    upgrade: "Hochstufen",
    downgrade: "Herabstufen",
    cancel: "Paket kündigen",
    withdraw: "Zurücknehmen",
  },
  actionFor: (action, name) => `${action}: ${name}`,
  ownerOnly: "Owner des Kontos bestellen und ändern das Paket.",
  quote: {
    titles: {
      trial: (name) => `${name}-Test beginnen`,
      order: (name) => `${name} bestellen`,
      upgrade: (name) => `Zu ${name} hochstufen`,
      downgrade: (name) => `Zu ${name} herabstufen`,
      cancel: "Paket kündigen",
      withdraw: "Anstehendes zurücknehmen",
    },
    due: "Jetzt fällig, netto",
    nothingDue: "nichts",
    then: "Ab dem nächsten Zeitraum, netto im Monat",
    quota: "Credits",
    quotaChange: (before, after, used) => `${before} → ${after}; ${used} bleiben verbraucht`,
    quotaNew: (quota) => `${quota} ab sofort`,
    when: "Wann",
    atOnce: "sofort",
    at: (day) => `am ${day}`,
    downgradeNote: (quota, used) =>
      `Das neue Kontingent ist ${quota} im Monat; in diesem Zeitraum haben Sie bisher ${used} verbraucht.`,
    trialNote: (end, name, price) =>
      `Der Test ist bis ${end} kostenlos. Mit dem Beginn ist bestellt: ${name} läuft für ${price} netto im Monat weiter, wenn Sie nicht vorher kündigen.`,
    cancelNote: (at) =>
      `Das Paket gilt bis ${at}. Danach antwortet die API mit 403 no_package. Bis dahin können Sie die Kündigung zurücknehmen.`,
    withdraws: "Damit wird auch zurückgenommen, was ansteht.",
    line: (name, days, all) => `${name}, ${days} von ${all} Tagen`,
    difference: (next, now, between) => `${next} − ${now} = ${between} mehr im Monat`,
    submit: {
      trial: "Test beginnen",
      free: "Bestätigen",
      paid: (amount) => `Für ${amount} netto bestellen`,
      cancel: "Zum Ende des Zeitraums kündigen",
    },
    changed: "Der Preis hat sich inzwischen geändert: Dies ist der neue. Es wurde nichts berechnet.",
  },
  done: {
    trial: "Der Test hat begonnen",
    order: "Das Paket ist bestellt",
    upgrade: "Das größere Paket gilt jetzt",
    downgrade: "Das kleinere Paket ist zum Ende des Zeitraums vorgemerkt",
    cancel: "Die Kündigung ist zum Ende des Zeitraums vorgemerkt",
    withdraw: "Es ist zurückgenommen",
  },
  invoice: {
    title: "Rechnungsposten",
    columns: { period: "Zeitraum", what: "Was", days: "Tage", amount: "Nettobetrag" },
    reasons: { package: "Paket", upgrade: "Hochstufung auf" },
    what: (reason, name) => `${reason} ${name}`,
    days: (days, all) => `${days} von ${all}`,
    total: "Summe",
    empty: "Noch wurde nichts berechnet.",
    print: "Drucken",
  },
};
