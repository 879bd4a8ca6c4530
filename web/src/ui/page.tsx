import { ArrowLeft } from 'lucide-react';
import type { ReactNode } from 'react';
import { navigate } from '../router';
import { text } from '../text';
import { Boundary } from './boundary';
import { IconButton } from './button';
import { classes } from './classes';

interface Props {
  title: string;
  /** Target of the back arrow. Without it, phones get an arrow to the room list. */
  back?: string;
  isWide: boolean;
  actions?: ReactNode;
  /** Wider content, for pages with columns. */
  isBroad?: boolean;
  children: ReactNode;
}

/** Layout of a page other than a room. */
export function Page({ title, back, isWide, actions, isBroad, children }: Props) {
  return (
    <main className="flex min-w-0 flex-1 flex-col bg-surface">
      <header className="flex h-14 shrink-0 items-center gap-1.5 border-b px-2 md:px-5">
        {(back !== undefined || !isWide) && (
          <IconButton label={text.back} onClick={() => navigate(back ?? '/app/')}>
            <ArrowLeft size={18} />
          </IconButton>
        )}
        <h1 className="min-w-0 flex-1 truncate font-semibold tracking-tight">{title}</h1>
        {actions}
      </header>
      <div className="flex-1 overflow-y-auto">
        <div className={classes('mx-auto px-4 py-6 md:px-6', isBroad === true ? 'max-w-6xl' : 'max-w-3xl')}>
          <Boundary>{children}</Boundary>
        </div>
      </div>
    </main>
  );
}

/** Message for an empty list, with an optional action. */
export function EmptyState({ title, lead, children }: { title: string; lead?: string; children?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-4 rounded-2xl border border-dashed px-6 py-12 text-center">
      <div>
        <p className="font-medium">{title}</p>
        {lead !== undefined && <p className="mx-auto mt-1 max-w-md text-sm text-soft">{lead}</p>}
      </div>
      {children}
    </div>
  );
}
