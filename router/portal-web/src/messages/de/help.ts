import type { help as english } from "../en/help.ts";
import type { Shape } from "../shape.ts";

export const help: Shape<typeof english> = {
  lead: "Wie Programme die API aufrufen, was ihre Fehler bedeuten und welche Grenzen gelten.",
  address: {
    title: "Basisadresse",
    lead: "Vorhandene Clients der Chat-Completions-Konvention funktionieren, sobald Basisadresse, API-Schlüssel und Modellname ausgetauscht sind. Jede Anfrage trägt den Schlüssel im Header Authorization: Bearer; ein Body ist JSON mit Content-Type: application/json.",
    description: "Die API als OpenAPI-Dokument",
  },
  reference: {
    link: "Für API-Clients: Fehler, Grenzen und die API des Portals im Einzelnen",
    lead: "Was einem Programm begegnen kann, das die API aufruft, im Einzelnen. Diesen Text gibt es nur auf Englisch.",
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
      means:
        "Eingabe und max_tokens zusammen passen nicht in das Kontextfenster. Die Meldung nennt die Zahlen; der Typ ist ContextWindowExceededError.",
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
    account: (users, changes) =>
      `Ein Konto hat höchstens ${users} Benutzer. Eine Person darf ${changes} Änderungen auf einmal machen, danach eine in der Sekunde.`,
    retry:
      "`retry-after` ist bei Grenzen des Kontos höchstens 60 Sekunden. Wer länger warten muss, bekommt wieder 60 Sekunden: Zwei Wiederholungen eines offiziellen Clients reichen für zwei Minuten.",
    evaluation:
      "Kontingente und Limits werden etwa einmal je Minute mit dem Verbrauch verglichen; einzelne Anfragen können darüber hinausgehen.",
  },
  streaming: {
    title: "Streaming",
    rules: {
      events:
        'Jedes Ereignis ist eine Zeile, die mit `data: ` beginnt und einen Chunk enthält; das Ende ist `data: [DONE]`. `stream_options: {"include_usage": true}` fügt einen letzten Chunk mit den Token-Zahlen und leerem `choices` an.',
      broken:
        "Ein Stream, der abbricht, endet mit einem Ereignis, dessen Daten ein `error`-Objekt sind, und ohne `[DONE]`: Eine Antwort ohne `[DONE]` ist unvollständig.",
      wait: "Solange eine Anfrage auf ihr Modell wartet, wird nichts gesendet, damit eine Ablehnung noch ein Status sein kann. Bis zum ersten Byte kann es so lange dauern wie ein Modellwechsel: Lassen Sie den Client darauf warten, bis zur längsten Dauer einer Anfrage.",
      place: "Ein Stream belegt seinen Platz unter den gleichzeitigen Anfragen des Kontos bis zum letzten Chunk.",
      leave: "Schließen Sie die Verbindung, wenn niemand die Antwort mehr braucht: Die Engine hört auf.",
    },
  },
  costs: {
    title: "Was eine Anfrage kostet",
    rules: {
      tokens:
        "Die Token von Eingabe und Ausgabe, mal dem Faktor des Modells zur Zeit der Anfrage. Embeddings kosten nur ihre Eingabe. Ein Stream kostet so viel wie eine Antwort in einem Stück.",
      failed:
        "Eine Antwort, die bei uns scheitert (`500`, `503`, ein Stream, den wir abbrechen), kostet nichts. Ein Stream kostet, was gesendet wurde, wenn die Engine ihn wegen des vom Modell geschriebenen Textes nicht fortsetzen kann. Eine Antwort in einem Stück, die scheitert, kostet nichts.",
      left: "Eine Antwort, die der Client abbricht, kostet die Eingabe und was bis dahin erzeugt war. Was die Engine noch nicht gezählt hatte, wird geschätzt; die Verbrauchsseite zeigt, wie viel.",
      twice:
        "Eine Anfrage, die zweimal gesendet wird, wird zweimal beantwortet und kostet zweimal, wenn beide beantwortet werden: Es gibt keinen Idempotenz-Schlüssel.",
      moved:
        "Der Dienst selbst sendet eine Anfrage nur dann an einen zweiten Server, wenn der erste vor dem ersten Byte ausfiel oder voll war. Höchstens eine von beiden kostet etwas.",
    },
  },
  schemas: {
    title: "Was ein JSON-Schema kosten darf",
    lead: "Eine Engine macht aus den Schemas einer Anfrage, auch aus denen ihrer Tools, eine Grammatik und prüft bei jedem Token ihr Vokabular daran. Ein Schema, das die Streams anderer aufhalten würde, wird mit 400 abgelehnt, und `param` nennt den Pfad der Stelle; sonst wird aus dem Schema nichts wiederholt, außer dem Namen des Tools. Die Grenzen gelten für alle Schemas einer Anfrage zusammen, nur die Fortsetzungen werden Stelle für Stelle gezählt. Was in beiden Spalten innerhalb liegt, nimmt jedes Modell.",
    columns: {
      what: "Was gezählt wird",
      others: "llama-server und andere",
      vllm: "vLLM",
    },
    rows: {
      size: "Größe, wenn alles ausgeschrieben ist: etwa 100 für eine Eigenschaft, die eigene Länge für einen Wert eines `enum`, zehn für jedes Mal, das ein Zeichen, ein Element (`maxItems`) oder ein Teil eines Musters wiederholt werden darf; bei vLLM 30 für einen Teil eines Musters, 2.000 für eine Zahl mit Grenzen und für ein `format`",
      repetition:
        "Zahl einer Wiederholung im `pattern` einer Antwort oder eines Tools, das gerufen werden muss (`a{2,128}`); darüber scheitert vLLM. Wo sie Zeichen zählt, leistet `maxLength` dasselbe",
      choices:
        "Fortsetzungen an einer Stelle der Antwort: zwei für jede Eigenschaft, die fehlen darf, eine für jede Alternative einer Vereinigung und für jeden Wert eines `enum`, soweit er anders beginnt",
      ways: "Arten, auf die ein `pattern` einen Text von 64 Zeichen treffen kann. `^(a+)+$` und `^(-|--)*$` haben keine Grenze und werden abgelehnt; eine E-Mail-Adresse hat 65",
      tools: "Tools",
      levels: "Ebenen, Verweise mitgezählt",
      name: "Zeichen im Namen einer Eigenschaft",
    },
    bySize: "nach ihrer Größe",
    rules: {
      within:
        "Innerhalb liegen 128 Tools mit je 20 Eigenschaften, 5.000 verlangte Eigenschaften, 1.000 Wörter im `enum` einer Antwort und Bäume mit `$ref`.",
      beyond:
        "Außerhalb liegen bei llama-server und der eingebetteten Engine ein Objekt mit mehr als 21 Eigenschaften, die nicht in `required` stehen (nennen Sie sie dort und lassen Sie null zu), und bei llama-server ein `enum` von mehr als 48 Werten in einem Tool.",
      light:
        "Ein Tool, das das Modell nicht aufrufen muss (`tool_choice` ist `auto`), darf darüber hinausgehen. Das Modell sieht sein ganzes Schema, aber von dem, was zu viel kostet, wird bei den Argumenten nur der Typ erzwungen. Ein solches Tool hat bei llama-server höchstens 64 Eigenschaften, bei anderen Engines 500, und kein Verweis führt in ein `oneOf`, das zu viel kostet. Eine Ablehnung nennt das Tool.",
      union:
        'Eine Vereinigung, die sich selbst enthält, braucht eine erste verlangte Eigenschaft, an der ihre Objekte zu unterscheiden sind (`"kind": {"const": "…"}`).',
      reference: "Ein Schema enthält sich selbst durch ein einfaches `$ref`, nicht durch eines in `allOf`.",
    },
  },
  changes: "Änderungen an Modellen und Faktoren",
};
