/** The form of the billing address. */
import { EmailField } from "../../elements/credential-fields.tsx";
import { SelectField, TextField } from "../../elements/field.tsx";
import { FormDialog, useDone } from "../../elements/form.tsx";
import type { useChange } from "../../api/queries.ts";
import { fieldText } from "../../messages/problem-text.ts";
import { useTexts } from "../../messages/messages.ts";
import { countryName, type Billing } from "./address-lines.tsx";

interface AddressFormProps {
  readonly before: Billing | null;
  readonly change: ReturnType<typeof useChange<"setBilling">>;
  readonly onClose: () => void;
}

export function AddressForm({ before, change, onClose }: AddressFormProps) {
  const all = useTexts();
  const texts = all.t.invoices.address;
  const { language } = all.format;
  const done = useDone(onClose);
  const error = (param: string) => fieldText(change.error, param, all);
  const field = (name: "name" | "street" | "postalCode" | "city", maxLength: number, autoComplete: string) => (
    <TextField
      name={name}
      label={texts[name]}
      error={error(name)}
      defaultValue={before?.[name]}
      autoFocus={name === "name"}
      required
      {...{ maxLength, autoComplete }}
    />
  );
  const countries = codes.map((code) => [code, countryName(code, language)] as const);
  return (
    <FormDialog
      title={texts.title}
      submit={texts.submit}
      change={change}
      onClose={onClose}
      onSubmit={({ name = "", street = "", postalCode = "", city = "", country = "", vatId, email }) =>
        change.mutate(
          { body: { name, street, postalCode, city, country, vatId: vatId || null, email: email || null } },
          done(texts.done),
        )
      }
    >
      <p className="soft">{texts.note}</p>
      {field("name", 200, "organization")}
      {field("street", 200, "street-address")}
      <div className="columns">
        {field("postalCode", 20, "postal-code")}
        {field("city", 100, "address-level2")}
      </div>
      <SelectField
        name="country"
        label={texts.country}
        error={error("country")}
        defaultValue={before?.country ?? "DE"}
        autoComplete="country"
      >
        {countries
          .toSorted(([, a], [, b]) => a.localeCompare(b, language))
          .map(([code, name]) => (
            <option key={code} value={code}>
              {name}
            </option>
          ))}
      </SelectField>
      <TextField
        name="vatId"
        label={texts.vatId}
        hint={texts.vatIdHint}
        error={error("vatId") && texts.vatIdWrong}
        defaultValue={before?.vatId ?? ""}
        maxLength={30}
        autoComplete="off"
      />
      <EmailField
        name="email"
        label={texts.email}
        hint={texts.emailHint}
        error={error("email")}
        defaultValue={before?.email ?? ""}
        required={false}
        autoComplete="email"
      />
    </FormDialog>
  );
}

/** Codes of ISO 3166. */
const codes = (
  "AD AE AF AG AI AL AM AO AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BW BY BZ CA CC CD CF CG CH " +
  "CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM " +
  "GN GP GQ GR GT GU GW GY HK HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC " +
  "LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR " +
  "NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SK SL SM SN SO SR SS ST SV SX " +
  "SY SZ TC TD TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"
).split(" ");
