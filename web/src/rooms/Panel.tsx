import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { text } from '../text';
import { IconButton } from '../ui/button';
import { classes } from '../ui/classes';
import { showPanel } from '../view';

interface Props {
  title: string;
  isWide: boolean;
  children: ReactNode;
}

/** What stands beside the conversation; on a phone, in its place. */
export function Panel({ title, isWide, children }: Props) {
  return (
    <aside
      aria-label={title}
      className={classes('flex h-full flex-col bg-surface', isWide ? 'w-84 shrink-0 border-l' : 'w-full')}
    >
      <header className="flex h-14 shrink-0 items-center justify-between border-b pr-3 pl-5">
        <h2 className="font-semibold tracking-tight">{title}</h2>
        <IconButton label={text.close} onClick={() => showPanel(undefined)}>
          <X size={17} />
        </IconButton>
      </header>
      {children}
    </aside>
  );
}
