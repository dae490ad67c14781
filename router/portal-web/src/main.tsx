/** Starts the portal in the browser. */
import { QueryClientProvider } from "@tanstack/react-query";
import { CSPProvider } from "@base-ui/react/csp-provider";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import type { Language } from "./messages/format.ts";
import { loadTexts } from "./messages/messages.ts";
import { PreferencesProvider } from "./session/preferences.tsx";
import { queryClient } from "./api/hooks.ts";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/elements.css";
import "./styles/overlays.css";
import "./styles/lists.css";
import "./styles/package.css";
import "./styles/pages.css";
import "./styles/chat.css";
import "./styles/account.css";
import "./styles/shell.css";
import "./styles/usage.css";
import "./styles/help.css";

const texts = await loadTexts(document.documentElement.lang as Language);

createRoot(document.getElementById("app")!).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <PreferencesProvider texts={texts} load={loadTexts}>
          <App />
        </PreferencesProvider>
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
