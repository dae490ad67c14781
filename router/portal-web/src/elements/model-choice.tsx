interface ModelChoiceProps {
  readonly legend: string;
  readonly every: string;
  readonly only: string;
  readonly models: readonly string[];
  /** null means every model. */
  readonly chosen: readonly string[] | null;
  readonly onChange: (chosen: readonly string[] | null) => void;
}

/** Lets the user choose all models or some of them. */
export function ModelChoice({ legend, every, only, models, chosen, onChange }: ModelChoiceProps) {
  // A chosen model that no longer exists can be removed.
  const offered = [...new Set([...models, ...(chosen ?? [])])];
  return (
    <fieldset className="choices">
      <legend className="legend">{legend}</legend>
      <label>
        <input type="radio" name="every" checked={chosen === null} onChange={() => onChange(null)} />
        {every}
      </label>
      <label>
        <input type="radio" name="every" checked={chosen !== null} onChange={() => onChange(models.slice(0, 1))} />
        {only}
      </label>
      {chosen && (
        <div className="choice-list">
          {offered.map((model) => (
            <label key={model}>
              <input
                type="checkbox"
                checked={chosen.includes(model)}
                // At least one stays, because a restriction to no model would block every request.
                disabled={chosen.length === 1 && chosen[0] === model}
                onChange={({ target }) =>
                  onChange(target.checked ? [...chosen, model] : chosen.filter((one) => one !== model))
                }
              />
              <code>{model}</code>
            </label>
          ))}
        </div>
      )}
    </fieldset>
  );
}
