/** Starts the operators' console in the browser. */
import { QueryClientProvider } from "@tanstack/react-query";
import { CSPProvider } from "@base-ui/react/csp-provider";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "../api/hooks.ts";
import type { Language } from "../messages/format.ts";
import { PreferencesProvider } from "../session/preferences.tsx";
import { App } from "./app.tsx";
import { loadConsoleTexts } from "./texts.ts";
import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/elements.css";
import "../styles/overlays.css";
import "../styles/lists.css";
import "../styles/pages.css";
import "../styles/shell.css";
import "../styles/console.css";

const texts = await loadConsoleTexts(document.documentElement.lang as Language);

createRoot(document.getElementById("app")!).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <PreferencesProvider texts={texts} load={loadConsoleTexts}>
          <App />
        </PreferencesProvider>
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
