/** The name and address on the next invoices, with a form to change them. */
import { useState } from "react";
import { useChange, useRead } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { useTexts } from "../../messages/messages.ts";
import { AddressForm } from "./address-form.tsx";
import { AddressLines } from "./address-lines.tsx";

/** `isMissed`: an invoice waits for the address. */
export function AddressCard({ isMissed }: { readonly isMissed: boolean }) {
  const { t } = useTexts();
  const texts = t.invoices.address;
  const read = useRead("showBilling", {});
  const change = useChange("setBilling", "showBilling", "listInvoices");
  const [isOpen, setOpen] = useState(false);
  const close = () => {
    setOpen(false);
    change.reset();
  };
  return (
    <section className="card" aria-labelledby="address">
      <h2 id="address">{texts.title}</h2>
      <Loaded read={read}>
        {({ billing }) => (
          <>
            {billing ? (
              <address>
                <AddressLines billing={billing} />
                {billing.email !== null && <span>{billing.email}</span>}
              </address>
            ) : (
              <p className={isMissed ? "note" : "soft"}>{texts.missing}</p>
            )}
            <div className="actions">
              <Button kind={billing ? "plain" : "primary"} onClick={() => setOpen(true)}>
                {billing ? texts.edit : texts.add}
              </Button>
            </div>
            {isOpen && <AddressForm before={billing} change={change} onClose={close} />}
          </>
        )}
      </Loaded>
    </section>
  );
}
