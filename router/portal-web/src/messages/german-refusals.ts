/** German texts of the portal API's refusals. Refusals that are not listed are shown in English. */
export const germanRefusals: Readonly<Record<string, string>> = {
  "A trial cannot be downgraded; it can be cancelled.": "Ein Test kann nicht verkleinert, aber gekündigt werden.",
  "The account had its trial already.": "Das Konto hatte seinen Test schon.",
  "The account has a package already.": "Das Konto hat schon ein Paket.",
  "The account has no package.": "Das Konto hat kein Paket.",
  "The account must keep one Owner who can sign in.": "Das Konto muss einen Owner behalten, der sich anmelden kann.",
  "The package is cancelled already.": "Das Paket ist schon gekündigt.",
  "The package is cancelled: withdraw the cancellation first.":
    "Das Paket ist gekündigt: Nehmen Sie zuerst die Kündigung zurück.",
  "The second factor is on already.": "Der zweite Faktor ist schon eingeschaltet.",
  "The second factor was set up again meanwhile.": "Der zweite Faktor wurde inzwischen neu eingerichtet.",
  "The user has joined already: make a password reset link instead.":
    "Der Benutzer ist schon beigetreten: Erstellen Sie stattdessen einen Link für ein neues Passwort.",
  "The user has no password yet: renew the invitation instead.":
    "Der Benutzer hat noch kein Passwort: Erneuern Sie stattdessen die Einladung.",
  "The user is blocked.": "Der Benutzer ist gesperrt.",
  "A user with this e-mail address exists already.": "Es gibt schon einen Benutzer mit dieser E-Mail-Adresse.",
  "There is no invitation to withdraw.": "Es gibt keine Einladung, die zurückgezogen werden könnte.",
  "There is nothing to withdraw.": "Es gibt nichts zurückzunehmen.",
  "Add a billing address first: the last invoice needs it.":
    "Tragen Sie zuerst eine Rechnungsadresse ein: Die letzte Rechnung braucht sie.",
  "You cannot do this to yourself.": "Das können Sie nicht mit sich selbst tun.",
  "You cannot block or delete yourself.": "Sie können sich nicht selbst sperren oder löschen.",
  "The account has 10000 users already: delete users who are no longer needed.":
    "Das Konto hat schon 10.000 Benutzer: Löschen Sie Benutzer, die nicht mehr gebraucht werden.",
  "The user has 25 active keys already.": "Der Benutzer hat schon 25 aktive Schlüssel.",
  "This user is blocked. An Admin or Owner of the account can change that.":
    "Dieser Benutzer ist gesperrt. Ein Admin oder Owner des Kontos kann das ändern.",
  "This account is blocked. The operator of this service can change that.":
    "Dieses Konto ist gesperrt. Der Betreiber dieses Dienstes kann das ändern.",
  "Your role does not allow this.": "Ihre Rolle erlaubt das nicht.",
  "There is no such model.": "Dieses Modell gibt es nicht.",
  "The expiry is in the past.": "Das Ablaufdatum liegt in der Vergangenheit.",
  "A password must have at least 12 characters.": "Ein Passwort muss mindestens 12 Zeichen haben.",
  "A password may have at most 1024 bytes.": "Ein Passwort darf höchstens 1024 Bytes haben.",
  "This is not a valid e-mail address: use name@domain in ASCII letters.":
    "Das ist keine gültige E-Mail-Adresse: Verwenden Sie name@domain in ASCII-Buchstaben.",
};
