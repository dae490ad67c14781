/** Settings and addresses for tests of invoices. */
import type { InvoiceSettings } from "../../src/config/invoice-settings.ts";
import type { BillingDetails } from "../../src/db/schema.ts";

export const invoiceSettings: InvoiceSettings = {
  since: "2026-11-01",
  numberPrefix: "R-",
  seller: {
    name: "Weiche Betriebs GmbH",
    address: ["Musterweg 1", "10115 Berlin"],
    vatId: "DE123456789",
    taxNumber: null,
    bank: "IBAN DE02 1203 0000 0000 2020 51",
    email: "rechnung@betrieb.example",
  },
  vat: {
    hundredths: 1900,
    note: null,
    reverseCharge: { countries: ["AT"], note: "Steuerschuldnerschaft des Leistungsempfängers" },
  },
};

export const acmeAddress: BillingDetails = {
  name: "ACME GmbH",
  street: "Hauptstraße 5",
  postalCode: "20095",
  city: "Hamburg",
  country: "DE",
  vatId: "DE987654321",
  email: null,
};
