/** The name and address on an account's next invoices. Issued invoices keep their own copy. */
import type { AccountId } from "@weiche/shared/ids.ts";
import type { BillingDetails } from "../../db/schema.ts";
import type { ActingContext } from "../../rights/accounts-context.ts";
import { audited } from "../../rights/audit-log.ts";
import { RequestError } from "../../rights/request-error.ts";
import { mayChangeAccount, requireRight } from "../../rights/rights.ts";
import { readSubscription } from "../subscription.ts";

export function createBillingDetails(context: ActingContext) {
  const { database, clock } = context;

  return {
    /** Returns null if the account has none. */
    async show(accountId: AccountId): Promise<BillingDetails | null> {
      const details = database.kysely.selectFrom("billingDetails").selectAll().where("accountId", "=", accountId);
      const row = await details.executeTakeFirst();
      if (!row) return null;
      const { accountId: _account, ...shown } = row;
      return shown;
    },

    async set(accountId: AccountId, typed: BillingDetails): Promise<void> {
      const row = tidy(typed);
      // The audit log contains no addresses.
      const deed = { action: "account.billing", on: { kind: "account", id: accountId } } as const;
      await audited(context, deed, async (transaction) => {
        const { isDeleted } = await readSubscription(transaction, accountId, clock.now(), "locked");
        if (isDeleted) throw new RequestError("not_found", `there is no account ${accountId}`);
        const object = { kind: "account", id: accountId, accountId } as const;
        await requireRight(context, transaction, object, mayChangeAccount);
        await transaction
          .insertInto("billingDetails")
          .values({ accountId, ...row })
          .onConflict((conflict) => conflict.column("accountId").doUpdateSet(row))
          .execute();
      });
    },
  };
}

/** Trims texts. Throws `RequestError` with every wrong field. */
function tidy({ name, street, postalCode, city, country, vatId, email }: BillingDetails): BillingDetails {
  const id = vatId?.toUpperCase().replaceAll(/[\s.-]/g, "") ?? "";
  const row = {
    name: name.trim(),
    street: street.trim(),
    postalCode: postalCode.trim(),
    city: city.trim(),
    country: country.trim().toUpperCase(),
    vatId: id === "" ? null : id,
    email: email?.trim() || null,
  };
  const isCountry = /^[A-Z]{2}$/.test(row.country) && regions.of(row.country) !== row.country;
  const mistakes = [
    !isCountry && (["country", `country is unknown: ${row.country} is no code such as DE`] as const),
    row.vatId !== null &&
      !isVatId(row.vatId, row.country) &&
      (["vatId", `vatId is not valid in ${row.country}: ${row.vatId} must begin with the country's code`] as const),
  ].filter((mistake) => mistake !== false);
  if (mistakes.length > 0)
    throw new RequestError("invalid", mistakes.map(([, message]) => message).join("; "), {
      details: mistakes.map(([param]) => ({ param, code: "not_allowed" })),
    });
  return row;
}

const regions = new Intl.DisplayNames("en", { type: "region" });

/** Countries whose VAT ids begin with another code than their own. */
const vatCodes: Readonly<Record<string, readonly string[]>> = { GR: ["EL"], GB: ["GB", "XI"], CH: ["CHE"] };

function isVatId(id: string, country: string): boolean {
  return (vatCodes[country] ?? [country]).some((code) => id.startsWith(code)) && /^[A-Z]{2}[A-Z0-9+*]{2,13}$/.test(id);
}
