/** Paths of the portal's pages. All of them are answered with the same document; the browser application shows the page. */
export const pagePaths = [
  "/",
  "/keys",
  "/start",
  "/usage",
  "/package",
  "/audit",
  "/models",
  "/changes",
  "/chat",
  "/users",
  "/account",
  "/notices",
  "/help",
  "/help/api",
  "/invitation",
  "/reset",
  "/forgotten",
  "/registration",
] as const;

export type PagePath = (typeof pagePaths)[number];
