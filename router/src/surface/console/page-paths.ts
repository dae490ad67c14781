/** Paths of the console's pages. Its listener serves the application at each; the application shows a page for each. */
export const consolePaths = ["/", "/slots", "/accounts", "/pipeline", "/sign-in"] as const;
export type ConsolePath = (typeof consolePaths)[number];
