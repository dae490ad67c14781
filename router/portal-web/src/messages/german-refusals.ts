/** Refusals of the business: the API says them in English, here is what they are in German. Those that are not here stay as they are. */
export const germanRefusals: Readonly<Record<string, string>> = {
  "A trial cannot be downgraded; it can be cancelled.": "Ein Test kann nicht verkleinert, aber gekündigt werden.",
  "The account had its trial already.": "Das Konto hatte seinen Test schon.",
  "The account has a package already.": "Das Konto hat schon ein Paket.",
  "The account has no package.": "Das Konto hat kein Paket.",
  "The last Owner of the account stays.": "Der letzte Owner des Kontos bleibt.",
  "The package is cancelled already.": "Das Paket ist schon gekündigt.",
  "The package is cancelled: withdraw the cancellation first.":
    "Das Paket ist gekündigt: Nehmen Sie zuerst die Kündigung zurück.",
  "The second factor is on already.": "Der zweite Faktor ist schon eingeschaltet.",
  "The second factor was set up anew meanwhile.": "Der zweite Faktor wurde inzwischen neu eingerichtet.",
  "The user has joined: they need a new password, if anything.":
    "Der Benutzer ist schon beigetreten; allenfalls braucht er ein neues Passwort.",
  "The user has no password yet: invite them.": "Der Benutzer hat noch kein Passwort: Laden Sie ihn ein.",
  "The user is blocked.": "Der Benutzer ist gesperrt.",
  "There is a user with this e-mail address already.": "Es gibt schon einen Benutzer mit dieser E-Mail-Adresse.",
  "There is no invitation that could be withdrawn.": "Es gibt keine Einladung, die zurückgezogen werden könnte.",
  "There is nothing to withdraw.": "Es gibt nichts zurückzunehmen.",
  "You cannot do this to yourself.": "Das können Sie nicht mit sich selbst tun.",
  "The user has 25 active keys already.": "Der Benutzer hat schon 25 aktive Schlüssel.",
  "This user is blocked. An Admin or Owner of the account can change that.":
    "Dieser Benutzer ist gesperrt. Ein Admin oder Owner des Kontos kann das ändern.",
  "This account is blocked. The operator of this service can change that.":
    "Dieses Konto ist gesperrt. Der Betreiber dieses Dienstes kann das ändern.",
  "Your role does not allow this.": "Ihre Rolle erlaubt das nicht.",
  "There is no such model.": "Dieses Modell gibt es nicht.",
  "The expiry lies in the past.": "Das Ablaufdatum liegt in der Vergangenheit.",
  "A password has at least 12 characters.": "Ein Passwort hat mindestens 12 Zeichen.",
  "A password has at most 1024 bytes.": "Ein Passwort hat höchstens 1024 Bytes.",
  "This is no e-mail address that mail could be sent to: name@domain in ASCII letters.":
    "Das ist keine E-Mail-Adresse, an die Post gehen könnte.",
};
