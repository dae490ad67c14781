/** Refusals of the last day, with advice. */
import { Link } from "wouter";
import { useRead } from "../../api/queries.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { useTexts } from "../../messages/messages.ts";

const refreshMs = 60_000;

export function RefusalsCard() {
  const { t, format } = useTexts();
  const read = useRead("showRefusals", {}, { refreshMs });
  // During an update a newer router may have counted a code that this page does not know.
  const codes: Readonly<Record<string, string>> = t.overview.codes;
  const advice: Readonly<Record<string, string>> = t.overview.advice;
  return (
    <section className="card" aria-labelledby="refusals">
      <h2 id="refusals">{t.overview.refusals}</h2>
      <Loaded read={read}>
        {(refusals) =>
          refusals.codes.length === 0 ? (
            <p className="soft">{t.overview.refusalsNone}</p>
          ) : (
            <ul className="rows">
              {refusals.codes.map((row) => (
                <li key={row.code}>
                  <Link to={`/requests?time=24h&code=${row.code}`}>
                    <strong className="number">{t.overview.times(format.number(row.count))}</strong> {row.status}{" "}
                    {codes[row.code] ?? row.code}
                  </Link>
                  <small>{advice[row.advice] ?? advice["other"]}</small>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  );
}
