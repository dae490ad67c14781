import { counted } from "../counted.ts";
export const settings = {
  lead: (name: string, day: string) => `${name}, since ${day}.`,
  name: {
    title: "Name of the account",
    label: "Company or project",
    submit: "Rename the account",
    done: "The account has its new name",
  },
  close: {
    title: "Close the account",
    lead: "Closing is permanent: all keys stop at once, and nobody can sign in any more.",
    open: "Close the account …",
    removed: (users: string, keys: string) =>
      `Removed: ${counted(users, "user", "users")} with their addresses and sign-ins, ${counted(keys, "key", "keys")}, and all names of the account and its keys.`,
    ends: "The package ends now, without a refund. A last invoice is issued if one is due.",
    kept: (invoices: string) =>
      `Kept: ${counted(invoices, "invoice", "invoices")} with name and address, because the law requires it. Usage and the audit log stay without names.`,
    download: "Download what you want to keep first: invoices, usage and the audit log.",
    confirm: (name: string) => `Type ${name} to confirm`,
    wrongName: "This is not the account's name.",
    submit: "Close the account permanently",
  },
};
