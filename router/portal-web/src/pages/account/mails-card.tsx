/** Chooses which mails this person gets. Each choice is stored at once. */
import type { Answer } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { useTexts } from "../../messages/messages.ts";

const topics = ["quota", "limits", "keys", "package", "sign-in"] as const;

export function MailsCard({ profile: { mailsOff } }: { readonly profile: Answer<"profile"> }) {
  const { t } = useTexts();
  const change = useChange("updateProfile", "profile");
  if (mailsOff === null) return null;
  const off = (change.isPending && change.variables.body?.mailsOff) || mailsOff;
  return (
    <section className="card" aria-labelledby="mails">
      <h2 id="mails">{t.account.mails.title}</h2>
      <fieldset className="choices">
        <legend className="soft">{t.account.mails.lead}</legend>
        {topics.map((topic) => (
          <label key={topic}>
            <input
              type="checkbox"
              checked={!off.includes(topic)}
              onChange={({ target }) => {
                const others = off.filter((one) => one !== topic);
                change.mutate({ body: { mailsOff: target.checked ? others : [...others, topic] } });
              }}
            />
            {t.account.mails.topics[topic]}
          </label>
        ))}
      </fieldset>
      {change.error && <ProblemBox problem={change.error} />}
    </section>
  );
}
