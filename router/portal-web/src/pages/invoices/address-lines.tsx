/** A billing address, a line each. */
import type { Answer } from "../../api/client.ts";
import { useTexts } from "../../messages/messages.ts";

export type Billing = NonNullable<Answer<"showBilling">["billing"]>;

export function AddressLines({ billing }: { readonly billing: Billing }) {
  const { t, format } = useTexts();
  const { name, street, postalCode, city, country, vatId } = billing;
  return (
    <>
      <strong>{name}</strong>
      <span>{street}</span>
      <span>{`${postalCode} ${city}`}</span>
      <span>{countryName(country, format.language)}</span>
      {vatId !== null && <span>{t.invoices.address.vatIdOf(vatId)}</span>}
    </>
  );
}

export function countryName(code: string, language: string): string {
  return new Intl.DisplayNames(language, { type: "region" }).of(code) ?? code;
}
