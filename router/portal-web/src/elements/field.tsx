/** Form fields: a label, a control, a hint and an error. */
import { useId, type ComponentProps, type ReactNode } from "react";

interface FieldTexts {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
}

export interface TextFieldProps extends FieldTexts, ComponentProps<"input"> {}
interface TextAreaProps extends FieldTexts, ComponentProps<"textarea"> {}
interface SelectFieldProps extends FieldTexts, ComponentProps<"select"> {}

export function TextField({ label, hint, error, ...input }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(described) => <input type="text" data-autofocus={input.autoFocus || undefined} {...input} {...described} />}
    </Field>
  );
}

export function TextArea({ label, hint, error, ...area }: TextAreaProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(described) => <textarea {...area} {...described} />}
    </Field>
  );
}

export function SelectField({ label, hint, error, children, ...select }: SelectFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(described) => (
        <select {...select} {...described}>
          {children}
        </select>
      )}
    </Field>
  );
}

interface Described {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": boolean | undefined;
}

/** A field for other controls. `children` gets the attributes that connect the control with its texts. */
function Field({
  label,
  hint,
  error,
  children,
}: FieldTexts & { readonly children: (described: Described) => ReactNode }) {
  const id = useId();
  const texts = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": texts || undefined, "aria-invalid": error !== undefined || undefined })}
      {hint !== undefined && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p className="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}
