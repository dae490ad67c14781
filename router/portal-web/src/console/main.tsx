/** Starts the operators' console in the browser. */
import { renderApp } from "../shell/render-app.tsx";
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

await renderApp(loadConsoleTexts, <App />);
