import { useId, type InputHTMLAttributes, type ReactNode, type TextareaHTMLAttributes } from 'react';
import { classes } from './classes';

export const INPUT =
  'w-full rounded-lg border border-line-strong bg-raised px-3 py-2 text-ink placeholder:text-faint ' +
  'focus:border-accent focus:outline-2 focus:outline-accent/30';

interface LabelledProps {
  label: string;
  hint?: string;
  problem?: string;
}

function Labelled(props: LabelledProps & { id: string; children: ReactNode }) {
  const { label, hint, problem, id, children } = props;
  return (
    <div className="space-y-1">
      <label htmlFor={id} className="block text-sm font-medium text-soft">
        {label}
      </label>
      {children}
      {(hint !== undefined || problem !== undefined) && (
        <div id={`${id}-note`}>
          {problem !== undefined && (
            <p role="alert" className="text-sm text-danger">
              {problem}
            </p>
          )}
          {hint !== undefined && <p className="text-xs text-faint">{hint}</p>}
        </div>
      )}
    </div>
  );
}

export function Field({
  label,
  hint,
  problem,
  className,
  children,
  ...rest
}: LabelledProps & InputHTMLAttributes<HTMLInputElement> & { children?: ReactNode }) {
  const id = useId();
  return (
    <Labelled {...{ label, hint, problem, id }}>
      <div className="relative">
        <input
          id={id}
          className={classes(INPUT, 'h-10', className)}
          aria-invalid={problem !== undefined}
          aria-describedby={hint !== undefined || problem !== undefined ? `${id}-note` : undefined}
          {...rest}
        />
        {children}
      </div>
    </Labelled>
  );
}

type SearchProps = Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value'> & {
  label: string;
  value: string;
  onChange: (value: string) => void;
};

/** Search input. Its label is shown as the placeholder. */
export function SearchField({ label, className = 'h-9 py-1 text-sm', onChange, ...rest }: SearchProps) {
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      className={classes(INPUT, className)}
      onChange={({ target }) => onChange(target.value)}
      {...rest}
    />
  );
}

export function TextArea({
  label,
  hint,
  className,
  ...rest
}: LabelledProps & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const id = useId();
  return (
    <Labelled {...{ label, hint, id }}>
      <textarea id={id} className={classes(INPUT, 'min-h-24 resize-y', className)} {...rest} />
    </Labelled>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  options: { value: T; label: string }[];
  onChange: (value: T) => void;
  disabled?: boolean;
}

export function Choice<T extends string>({ label, value, options, onChange, disabled }: ChoiceProps<T>) {
  const id = useId();
  const chosen = (given: string) => options.find((option) => option.value === given)?.value ?? value;
  return (
    <Labelled label={label} id={id}>
      <select
        id={id}
        className={classes(INPUT, 'h-10 truncate pr-8')}
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(chosen(event.target.value))}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </Labelled>
  );
}
