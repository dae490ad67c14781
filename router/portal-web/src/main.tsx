/** Starts the portal in the browser. */
import { App } from "./app.tsx";
import { loadTexts } from "./messages/messages.ts";
import { renderApp } from "./shell/render-app.tsx";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/elements.css";
import "./styles/overlays.css";
import "./styles/lists.css";
import "./styles/invoices.css";
import "./styles/package.css";
import "./styles/pages.css";
import "./styles/account.css";
import "./styles/shell.css";
import "./styles/usage.css";
import "./styles/help.css";

await renderApp(loadTexts, <App />);
