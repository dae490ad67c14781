import type { problems as english } from "../en/problems.ts";
import type { Shape } from "../shape.ts";

export const problems: Shape<typeof english> = {
  unreachable: "Das Portal antwortet nicht. Prüfen Sie Ihre Verbindung.",
  internal: "Bei uns ist etwas schiefgegangen.",
  login_failed: "E-Mail-Adresse oder Passwort ist falsch.",
  password_wrong: "Das bisherige Passwort ist falsch.",
  code_wrong: "Der Code ist falsch oder wurde schon verwendet.",
  totp_required: "Ein Code Ihrer Authenticator-App wird benötigt.",
  too_many_attempts: (seconds) => `Zu viele Versuche oder Änderungen auf einmal. Erneut möglich in ${seconds} s.`,
  too_many_requests: "Zu viele Anfragen auf einmal. Warten Sie einen Augenblick.",
  busy: "Der Dienst ist gerade ausgelastet. Versuchen Sie es in einigen Sekunden erneut.",
  model_unavailable: "Dieses Modell startet zurzeit nicht. Wählen Sie ein anderes, oder versuchen Sie es später.",
  no_node_available:
    "Zurzeit läuft dieses Modell auf keinem Server. Wählen Sie ein anderes, oder versuchen Sie es später.",
  maintenance: "Dieses Modell wird gewartet. Wählen Sie ein anderes, oder versuchen Sie es später.",
  not_found: "Das gibt es nicht mehr.",
  invalid: "Bitte prüfen Sie Ihre Eingaben.",
  requestId: (id) => `Anfrage ${id}`,
  staleSince: (time) => `Konnte nicht aktualisiert werden; Stand ${time}.`,
  fields: {
    missing: "Bitte ausfüllen.",
    malformed: "Die Form stimmt nicht.",
    too_short: "Das ist zu kurz.",
    too_long: "Das ist zu lang.",
    too_small: "Das ist zu klein.",
    too_large: "Das ist zu groß.",
    not_allowed: "Das ist hier nicht möglich.",
    wrong: "Das ist falsch.",
    other: "Bitte prüfen.",
  },
};
