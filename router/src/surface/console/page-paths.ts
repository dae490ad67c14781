/** Paths of the console's pages. The listener serves the same document at each, and the application shows the page. */
export const consolePaths = ["/", "/slots", "/accounts", "/pipeline", "/sign-in"] as const;
