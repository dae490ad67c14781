import type { credits as english } from "../en/credits.ts";
import type { Shape } from "../shape.ts";

export const credits: Shape<typeof english> = {
  understood: (amount) => `= ${amount} Credits`,
  understoodOf: (amount, share) => `= ${amount} Credits, ${share} des Pakets`,
  little: "weniger als 1 %",
  ambiguous: (text, small, large) =>
    `${text} kann ${small} oder ${large} bedeuten. Bitte geben Sie ${small} oder ${large} ein.`,
  unreadable: (max) => `Bitte geben Sie eine Zahl wie 2.000.000 oder 2,5 Mio. ein, höchstens ${max}.`,
};
