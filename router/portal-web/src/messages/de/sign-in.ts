import type { signIn as english } from "../en/sign-in.ts";
import type { Shape } from "../shape.ts";

export const signIn: Shape<typeof english> = {
  title: "Anmelden",
  email: "E-Mail-Adresse",
  password: "Passwort",
  newPassword: "Neues Passwort",
  passwordHint: "Mindestens 12 Zeichen. Gut sind mehrere Wörter hintereinander.",
  code: "Code",
  codeHint: "Sechs Ziffern Ihrer Authenticator-App oder ein Wiederherstellungscode.",
  codeTitle: "Zweiter Faktor",
  codeLead: "Ihr Passwort stimmt. Geben Sie den Code ein, den Ihre Authenticator-App jetzt zeigt.",
  submit: "Anmelden",
  back: "Zurück",
  forgotten: "Passwort vergessen?",
  register: "Konto eröffnen",
  again: {
    title: "Bitte melden Sie sich erneut an",
    lead: "Ihre Anmeldung ist abgelaufen. Ihre Eingaben bleiben erhalten.",
    other: "Als jemand anderes anmelden",
  },
  forgottenPage: {
    title: "Neues Passwort",
    lead: "Wir senden Ihnen einen Link, mit dem Sie ein neues Passwort festlegen.",
    submit: "Link senden",
    sentTitle: "Sehen Sie in Ihr Postfach",
    sentLead: (email) =>
      `Wenn ${email} zu einem Benutzer gehört, ist ein Link unterwegs. Er gilt einmal und für begrenzte Zeit.`,
    noMailLead:
      "Hier werden keine E-Mails versandt. Ein Admin oder Owner Ihres Kontos erstellt unter Benutzer einen Link für Sie.",
    backToSignIn: "Zurück zur Anmeldung",
  },
  invitation: {
    title: (account) => `${account} beitreten`,
    loadingTitle: "Einladung",
    lead: (email, role) => `Sie treten als ${email} mit der Rolle ${role} bei. Wählen Sie Ihr Passwort.`,
    submit: "Beitreten",
    until: (time) => `Der Link gilt einmal, bis ${time}.`,
    overTitle: "Dieser Link gilt nicht mehr",
    overLead:
      "Er wurde verwendet, zurückgezogen oder ist zu alt. Bitten Sie die Person, die Sie eingeladen hat, um einen neuen. Sind Sie bereits beigetreten, melden Sie sich an.",
    missingTitle: "Dieser Link ist unvollständig",
    missingLead: "Öffnen Sie den ganzen Link aus der Nachricht, oder kopieren Sie ihn vollständig in die Adresszeile.",
  },
  reset: {
    title: "Neues Passwort festlegen",
    lead: "Danach sind Sie überall abgemeldet und melden sich mit dem neuen Passwort an.",
    submit: "Passwort festlegen",
    doneTitle: "Das Passwort ist gesetzt",
    doneLead: "Melden Sie sich jetzt damit an.",
    overTitle: "Dieser Link gilt nicht mehr",
    overLead:
      "Er wurde verwendet oder ist zu alt. Haben Sie damit ein Passwort festgelegt, melden Sie sich mit diesem an. Sonst fordern Sie einen neuen Link an oder bitten einen Admin oder Owner Ihres Kontos.",
  },
  registration: {
    title: "Konto eröffnen",
    lead: "Sie werden Owner eines neuen Kontos und wählen danach sein Paket.",
    accountName: "Firma oder Projekt",
    submit: "Konto eröffnen",
    submitMail: "Bestätigungslink senden",
    accept: "Ich akzeptiere die Nutzungsbedingungen.",
    terms: "Bedingungen lesen",
    mailedLead: (email) =>
      `Ein Link ist unterwegs an ${email}. Mit ihm eröffnen Sie Ihr Konto. Er gilt einmal und einen Tag lang. Nichts angekommen? Sehen Sie im Spam-Ordner nach.`,
    confirmTitle: (account) => `Konto ${account} eröffnen`,
    confirmLead: (email) => `Damit bestätigen Sie auch Ihre Adresse ${email}. Legen Sie Ihr Passwort fest.`,
    overLead: "Er wurde schon benutzt oder ist zu alt. Eröffnen Sie das Konto noch einmal, oder melden Sie sich an.",
    closedLead: "Konten eröffnet hier der Betreiber. Bitten Sie ihn um eine Einladung.",
  },
};
