/** Rules of the help page, one below the other. */
import { CodeText } from "../../elements/code-text.tsx";

export function RuleList({ rules }: { readonly rules: Readonly<Record<string, string>> }) {
  return (
    <ul className="prose bullets">
      {Object.values(rules).map((rule) => (
        <li key={rule}>
          <CodeText text={rule} />
        </li>
      ))}
    </ul>
  );
}
