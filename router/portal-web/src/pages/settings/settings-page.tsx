/** The page of the account's settings, for Owners: its name, its billing address, and closing it. */
import { useState } from "react";
import { useChange, useRead } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { TextField } from "../../elements/field.tsx";
import { Form } from "../../elements/form.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { useToast } from "../../elements/toast/toast.tsx";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { AddressCard } from "../invoices/address-card.tsx";
import { CloseDialog, type OwnAccount } from "./close-dialog.tsx";

export default function SettingsPage() {
  const { t, format } = useTexts();
  const read = useRead("showOwnAccount", {});
  return (
    <Page
      title={t.shell.pages.settings}
      lead={read.data && t.settings.lead(read.data.name, format.date(read.data.createdAt))}
    >
      <div className="sections">
        <Loaded read={read}>{(account) => <NameCard account={account} />}</Loaded>
        <AddressCard isMissed={false} />
        {read.data && <CloseCard account={read.data} />}
      </div>
    </Page>
  );
}

function NameCard({ account }: { readonly account: OwnAccount }) {
  const texts = useTexts();
  const { name } = texts.t.settings;
  const say = useToast();
  const change = useChange("renameOwnAccount", "showOwnAccount", "session");
  return (
    <section className="card" aria-labelledby="name">
      <h2 id="name">{name.title}</h2>
      <Form
        submit={name.submit}
        change={change}
        onSubmit={({ accountName }) =>
          change.mutate({ body: { name: accountName! } }, { onSuccess: () => say(name.done) })
        }
      >
        <TextField
          name="accountName"
          label={name.label}
          error={fieldText(change.error, "name", texts)}
          defaultValue={account.name}
          autoComplete="organization"
          maxLength={200}
          required
        />
      </Form>
    </section>
  );
}

function CloseCard({ account }: { readonly account: OwnAccount }) {
  const { close } = useTexts().t.settings;
  const [isOpen, setOpen] = useState(false);
  return (
    <section className="card" aria-labelledby="close">
      <h2 id="close">{close.title}</h2>
      <p className="soft">{close.lead}</p>
      <div className="actions">
        <Button kind="danger" onClick={() => setOpen(true)}>
          {close.open}
        </Button>
      </div>
      {isOpen && <CloseDialog account={account} onClose={() => setOpen(false)} />}
    </section>
  );
}
