import { expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { createSubscriptions } from "../../src/subscriptions/subscriptions.ts";
import { acmeAddress, invoiceSettings } from "../accounts/invoices-rig.ts";
import { startAdmin } from "./admin-rig.ts";

const admin = await forThisFile(startAdmin());
const settings = { ...invoiceSettings, since: "2026-01-01" };

/** Makes an account with a line of an ended period. */
async function newAccount(name: string): Promise<string> {
  const email = `${name.toLowerCase()}@example.com`;
  const { id } = await admin.json<{ id: string }>("account", "create", "--name", name, "--owner-email", email);
  await admin.database.pool.query(
    `insert into invoice_lines values ($1, 'package', 'Pro', '2026-01-09T23:00Z', '2026-02-09T23:00Z', 31, 31, 3500, now())`,
    [id],
  );
  return id;
}

const issue = () => createSubscriptions({ database: admin.database, clock: systemClock }, settings).issueInvoices();
const run = async (...args: string[]) => {
  const { code, out, error } = await admin.weiche(args);
  expect([code, error]).toEqual([0, ""]);
  return out;
};

test("an operator sets a billing address, and lists, shows and exports invoices as table, CSV and JSON", async () => {
  const id = await newAccount("ACME");
  await newAccount("Globex");
  expect(await run("invoices", "address", "--account", "acme")).toMatch(/^none: the account's periods wait/);
  const address = ["--name", '=cmd"|', "--street", "Hauptstraße 5", "--postal-code", "20095", "--city", "Hamburg"];
  await run("invoices", "address", "--account", "acme", ...address, "--country", "AT", "--vat-id", "atu 123 456 78");
  await run("invoices", "address", "--account", "acme", "--email", "pay@acme.example");
  expect(await admin.json("invoices", "address", "--account", "acme")).toEqual({
    ...acmeAddress,
    ...{ name: '=cmd"|', country: "AT", vatId: "ATU12345678", email: "pay@acme.example" },
  });
  const { code, error } = await admin.weiche(["invoices", "address", "--account", "acme", "--country", "XX"]);
  expect([code, error]).toEqual([1, expect.stringContaining("--country is unknown: XX is no code such as DE")]);

  expect(await issue()).toBe(1);
  const number = `R-${new Date().getFullYear()}-00001`;
  expect(await run("invoices", "list")).toMatch(new RegExp(`${number} +\\S+ +2026-01-10 +2026-02-09 .* 35\\.00 `));
  // This rig's router has no settings, so the other account waits for the operator.
  expect(await run("invoices", "list", "--waiting")).toMatch(/35\.00 +`invoices` in router\.yaml +Globex/);
  const shown = await run("invoices", "show", number);
  expect(shown).toMatch(/^package +Pro +2026-01-10 +2026-02-09 +31 of 31 +35\.00 EUR$/m);
  expect(shown).toMatch(/VAT 0 % +0\.00 EUR\ntotal +35\.00 EUR\nnote +Steuerschuldnerschaft/);

  const [head, line, end] = (await run("invoices", "export", "--account", id)).split("\r\n");
  expect(head).toBe("number,issuedOn,firstDay,lastDay,accountId,name,country,vatId,net,vatPercent,vat,gross,note");
  expect(line).toContain(`,"'=cmd""|",AT,ATU12345678,35.00,0,0.00,35.00,Steuerschuldnerschaft`);
  expect(end).toBe("");
  const json = await run("invoices", "export", "--format", "json");
  expect(
    json
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text) as unknown),
  ).toEqual([await admin.json("invoices", "show", number)]);
  expect(await run("invoices", "export", "--to", "2026-01-31")).toBe(`${head}\r\n`);
  for (const wrong of [
    ["show", "R-1"],
    ["export", "--from", "2026-02-30"],
    ["list", "--account", "nobody"],
  ])
    expect((await admin.weiche(["invoices", ...wrong])).code).toBe(1);
});
