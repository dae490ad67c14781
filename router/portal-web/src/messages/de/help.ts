import type { help as english } from "../en/help.ts";
import type { Shape } from "../shape.ts";

export const help: Shape<typeof english> = {
  lead: "Wie Programme die API aufrufen, was ihre Fehler bedeuten und welche Grenzen gelten.",
  address: {
    title: "Basisadresse",
    lead: "Vorhandene Clients der Chat-Completions-Konvention funktionieren, sobald Basisadresse, API-Schlüssel und Modellname ausgetauscht sind. Jede Anfrage trägt den Schlüssel im Header Authorization: Bearer; ein Body ist JSON mit Content-Type: application/json.",
    description: "Die API als OpenAPI-Dokument",
  },
  clients: {
    title: "Clients",
    lead: "Diese Programme laufen so, wie sie da stehen, mit dem Schlüssel in der Umgebung.",
    embeddings: "Embeddings mit LangChain in Python",
    embeddingsLead:
      "Setzen Sie check_embedding_ctx_length=False. Sonst sendet LangChain statt Ihrer Texte die Token-Nummern eines anderen Modells, was die API mit 400 beantwortet.",
  },
  errors: {
    title: "Wenn eine Antwort ein Fehler ist",
    lead: "Ihr Programm sollte sich nach dem HTTP-Status und nach error.code richten. Der Text ist für Menschen und kann sich ändern. Einige Ablehnungen kommen vor der API und haben eine HTML-Seite statt JSON.",
    columns: { status: "Status und Code", means: "Was es bedeutet", todo: "Was zu tun ist", retry: "Wiederholen" },
    page: "HTML-Seite, kein JSON",
    yes: "ja",
    no: "nein",
  },
  refusals: {
    invalid_request: {
      means: "Die Anfrage ist ungültig; param nennt die Stelle.",
      todo: "Berichtigen Sie die Anfrage: den Modellnamen, einen Parameter, ein Bild als Link.",
    },
    context_window_exceeded: {
      means: "Eingabe und max_tokens zusammen passen nicht in das Kontextfenster. Die Meldung nennt die Zahlen.",
      todo: "Senden Sie weniger Verlauf, oder verlangen Sie weniger Token.",
    },
    invalid_api_key: {
      means:
        "Der Schlüssel fehlt, ist falsch, widerrufen oder abgelaufen, sein Benutzer oder Konto ist gesperrt, oder das Limit von Schlüssel oder Benutzer ist erreicht.",
      todo: "Sehen Sie den Zustand auf der Seite Schlüssel nach. Erhöhen Sie das Limit, oder nehmen Sie einen anderen.",
    },
    no_package: {
      means: "Das Konto hat kein aktives Paket.",
      todo: "Ein Owner bestellt eines auf der Seite Paket.",
    },
    key_model_access_denied: {
      means: "Der Schlüssel oder sein Benutzer darf dieses Modell nicht aufrufen. Die Meldung nennt die erlaubten.",
      todo: "Rufen Sie eines davon auf, oder lassen Sie die Einschränkung ändern.",
    },
    path_not_supported: {
      means: "Die API hat diesen Pfad nicht, oder nicht mit dieser Methode.",
      todo: "Prüfen Sie die Adresse. Assistenten, Dateien, Stapel, Bild- und Tonerzeugung gibt es nicht.",
    },
    body_too_large: {
      means: "Die Anfrage ist zu groß, meist wegen der Bilder.",
      todo: "Senden Sie weniger auf einmal.",
    },
    insufficient_quota: {
      means: "Die Credits dieses Abrechnungszeitraums sind verbraucht. Der Header x-should-retry ist false.",
      todo: "Ein Owner wählt ein größeres Paket, was sofort hilft, oder Sie warten auf den nächsten Zeitraum.",
    },
    rate_limit_exceeded: {
      means: "Zu viele Anfragen je Minute oder zu viele gleichzeitig, über alle Schlüssel des Kontos.",
      todo: "Warten Sie so viele Sekunden, wie der Header retry-after sagt, oder auf das Ende laufender Anfragen.",
    },
    internal: { means: "Bei uns ist etwas schiefgegangen.", todo: "Wiederholen Sie mit wachsenden Pausen." },
    engine_died: {
      means: "Die Engine des Modells endete, während sie an der Anfrage arbeitete.",
      todo: "Wiederholen Sie. Geschieht es mit derselben Anfrage erneut, ändern Sie die Anfrage.",
    },
    request_barred: {
      means: "An genau dieser Anfrage ist die Engine mehrmals gescheitert; sie wird eine Zeit lang nicht ausgeführt.",
      todo: "Ändern Sie die Anfrage. Der Header x-should-retry ist false.",
    },
    address_limit: {
      means: "Zu viele Anfragen von einer Netzadresse.",
      todo: "Verteilen Sie Ihre Anfragen; siehe die Grenzen unten.",
    },
    model_switching: {
      means: "Der Server wechselt zu einem anderen Modell.",
      todo: "Wiederholen Sie nach den Sekunden in retry-after.",
    },
    model_unavailable: {
      means: "Das Modell ist nicht gestartet.",
      todo: "Wiederholen Sie nach den Sekunden in retry-after, oder rufen Sie ein anderes Modell auf.",
    },
    overloaded: {
      means: "Zu viele Anfragen warten auf das Modell.",
      todo: "Wiederholen Sie nach den Sekunden in retry-after.",
    },
    no_node_available: {
      means: "Kein Server für dieses Modell ist erreichbar.",
      todo: "Wiederholen Sie mit wachsenden Pausen.",
    },
    maintenance: { means: "Das Modell oder sein Server wird gewartet.", todo: "Wiederholen Sie es später." },
    timeout: {
      means: "Die Antwort begann nicht in der Zeit, die eine Anfrage dauern darf.",
      todo: "Lassen Sie sich lange Antworten streamen, oder verlangen Sie weniger Token.",
    },
  },
  retries: {
    title: "Wiederholen",
    rules: {
      backoff: "Bei 500, 502, 503 und 504: mit wachsenden Pausen, etwa 1, 2, 4 und 8 Sekunden.",
      after: "Bei 429 mit Code rate_limit_exceeded: nach den Sekunden im Header retry-after.",
      never: "Nicht bei 400, 401, 403, 404, 413 und 422, auch nicht bei 429 mit Code insufficient_quota.",
      libraries: "Die offiziellen openai-Pakete tun all das von selbst.",
      cut: "Endet eine Antwort mit finish_reason length und ohne content, war max_tokens verbraucht, meist durch das Denken: Verlangen Sie mehr Token.",
    },
  },
  limits: {
    title: "Grenzen",
    address: (burst, perSecond) =>
      `Eine Netzadresse darf ${burst} Anfragen auf einmal senden, auf Dauer ${perSecond} in der Sekunde. Darüber ist die Antwort 503 mit einer HTML-Seite.`,
    package: "Anfragen je Minute, gleichzeitige Anfragen und Credits teilen sich alle Schlüssel des Kontos:",
    context: "Kontextfenster, Bilder und Dimensionen hängen vom Modell ab:",
    body: (megabytes) => `Eine Anfrage hat höchstens ${megabytes} MB.`,
    duration: (seconds) =>
      `Eine Anfrage dauert höchstens ${seconds} Sekunden. Lassen Sie sich lange Antworten streamen.`,
    keys: (count) => `Ein Benutzer hat höchstens ${count} aktive Schlüssel.`,
    evaluation:
      "Kontingente und Limits werden etwa einmal je Minute mit dem Verbrauch verglichen; einzelne Anfragen können darüber hinausgehen.",
  },
  changes: "Änderungen an Modellen und Faktoren",
};
