import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { classes } from './classes';

type Variant = 'primary' | 'quiet' | 'plain' | 'danger';

const VARIANTS: Record<Variant, string> = {
  primary: 'bg-accent text-on-accent hover:bg-accent-strong',
  quiet: 'bg-raised text-ink border hover:bg-hover hover:border-line-strong',
  plain: 'text-soft hover:bg-hover hover:text-ink',
  danger: 'bg-raised text-danger border hover:bg-danger-soft',
};

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: Variant;
  size?: 'normal' | 'small';
}

export function Button({ variant = 'quiet', size = 'normal', className, type = 'button', ...rest }: Props) {
  const shape = size === 'small' ? 'h-7 px-2.5 text-sm rounded-md' : 'h-9 px-3.5 rounded-lg';
  return (
    <button
      type={type}
      className={classes(
        'inline-flex shrink-0 items-center justify-center gap-1.5 font-medium whitespace-nowrap transition-colors',
        'disabled:pointer-events-none disabled:opacity-50',
        shape,
        VARIANTS[variant],
        className,
      )}
      {...rest}
    />
  );
}

interface IconProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  label: string;
  children: ReactNode;
}

/** Button with an icon only. The label is its accessible name and its tooltip. */
export function IconButton({ label, className, type = 'button', ...rest }: IconProps) {
  return (
    <button
      type={type}
      aria-label={label}
      title={label}
      className={classes(
        'inline-flex size-8 shrink-0 items-center justify-center rounded-lg text-soft transition-colors',
        'hover:bg-hover hover:text-ink disabled:pointer-events-none disabled:opacity-40 data-[state=open]:bg-hover',
        className,
      )}
      {...rest}
    />
  );
}
