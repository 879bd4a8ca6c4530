import type { ReactNode } from 'react';
import { classes } from '../ui/classes';

export type Tone = 'plain' | 'accent' | 'warn' | 'danger';

const TONES: Record<Tone, string> = {
  plain: 'bg-hover text-soft',
  accent: 'bg-accent-soft text-accent',
  warn: 'bg-warn-soft text-warn',
  danger: 'bg-danger-soft text-danger',
};

/** Short label of a state or a number. */
export function Badge({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span className={classes('inline-flex shrink-0 items-center rounded-md px-1.5 py-0.5 text-xs font-medium', TONES[tone])}>
      {children}
    </span>
  );
}
