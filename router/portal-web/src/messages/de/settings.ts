import { counted } from "../counted.ts";
import type { settings as english } from "../en/settings.ts";
import type { Shape } from "../shape.ts";

export const settings: Shape<typeof english> = {
  lead: (name, day) => `${name}, seit ${day}.`,
  name: {
    title: "Name des Kontos",
    label: "Firma oder Projekt",
    submit: "Konto umbenennen",
    done: "Das Konto hat seinen neuen Namen",
  },
  close: {
    title: "Konto schließen",
    lead: "Das ist endgültig: Alle Schlüssel werden sofort ungültig, und niemand kann sich mehr anmelden.",
    open: "Konto schließen …",
    removed: (users, keys) =>
      `Gelöscht werden ${counted(users, "Benutzer", "Benutzer")} mit Adressen und Anmeldedaten, ${counted(keys, "Schlüssel", "Schlüssel")} und alle Namen des Kontos und der Schlüssel.`,
    ends: "Das Paket endet sofort, ohne Erstattung. Steht noch eine Rechnung aus, wird sie jetzt ausgestellt.",
    kept: (invoices) =>
      `Aufbewahrt werden ${counted(invoices, "Rechnung", "Rechnungen")} mit Name und Adresse, weil das Gesetz es verlangt. Verbrauch und Protokoll bleiben ohne Namen.`,
    download: "Laden Sie vorher herunter, was Sie behalten möchten: Rechnungen, Verbrauch und Protokoll.",
    confirm: (name) => `Zur Bestätigung ${name} eingeben`,
    wrongName: "Das ist nicht der Name des Kontos.",
    submit: "Konto endgültig schließen",
  },
};
