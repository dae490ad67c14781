/** Paths of the portal's pages. The listener serves the same document at each, and the application shows the page. */
export const pagePaths = [
  "/",
  "/keys",
  "/start",
  "/usage",
  "/requests",
  "/package",
  "/invoices",
  "/audit",
  "/models",
  "/changes",
  "/chat",
  "/users",
  "/settings",
  "/account",
  "/notices",
  "/help",
  "/help/api",
  "/invitation",
  "/reset",
  "/forgotten",
  "/registration",
  "/confirm",
] as const;

export type PagePath = (typeof pagePaths)[number];
