import { Bot } from 'lucide-react';
import type { CSSProperties } from 'react';
import { classes } from './classes';

interface Props {
  id: string;
  name: string;
  kind: 'user' | 'agent' | 'system';
  size?: number;
  /** Presence, shown as a dot. Undefined if unknown. */
  state?: 'online' | 'busy' | 'offline';
}

const DOTS = { online: 'bg-accent', busy: 'bg-warn', offline: 'bg-line-strong' };

/** Avatar: initials in a circle for people, an icon in a square for agents. */
export function Avatar({ id, name, kind, size = 36, state }: Props) {
  const hue = hueOf(id);
  const style: CSSProperties =
    kind === 'user'
      ? {
          backgroundColor: `light-dark(oklch(0.9 0.045 ${hue}), oklch(0.36 0.05 ${hue}))`,
          color: `light-dark(oklch(0.42 0.09 ${hue}), oklch(0.9 0.05 ${hue}))`,
        }
      : {};
  return (
    <span className="relative inline-flex shrink-0" style={{ width: size, height: size }} aria-hidden>
      <span
        className={classes(
          'flex size-full items-center justify-center font-semibold select-none',
          kind === 'user' ? 'rounded-full' : 'rounded-[28%] border border-accent/25 bg-accent-soft text-accent',
        )}
        style={{ ...style, fontSize: size * 0.38 }}
      >
        {kind === 'user' ? letters(name) : <Bot size={size * 0.56} strokeWidth={1.8} />}
      </span>
      {state !== undefined && (
        <span
          className={classes(
            'absolute -right-0.5 -bottom-0.5 size-2.5 rounded-full border-2 border-surface',
            DOTS[state],
          )}
        />
      )}
    </span>
  );
}

function letters(name: string): string {
  const words = name.trim().split(/[\s_-]+/u);
  const picked = words.length > 1 ? [words[0], words.at(-1)] : [words[0]];
  return picked.map((word) => Array.from(word ?? '')[0] ?? '').join('').toLocaleUpperCase() || '?';
}

function hueOf(id: string): number {
  let sum = 7;
  for (const letter of id) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 3600;
  return sum / 10;
}
