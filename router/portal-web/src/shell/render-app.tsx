/** Renders an application, in the language that `boot.js` has chosen. */
import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "../api/hooks.ts";
import type { Language } from "../messages/format.ts";
import type { Texts } from "../messages/messages.ts";
import { PreferencesProvider } from "../session/preferences.tsx";

/** `load` fetches the texts of a language. */
export async function renderApp(load: (language: Language) => Promise<Texts>, app: ReactNode): Promise<void> {
  const texts = await load(document.documentElement.lang as Language);
  createRoot(document.getElementById("app")!).render(
    <StrictMode>
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={queryClient}>
          <PreferencesProvider texts={texts} load={load}>
            {app}
          </PreferencesProvider>
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  );
}
