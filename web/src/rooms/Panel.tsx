import { X } from 'lucide-react';
import { useEffect, type ReactNode } from 'react';
import { text } from '../text';
import { Boundary } from '../ui/boundary';
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
  useWayBack(isWide);
  return (
    <aside
      aria-label={title}
      className={classes('flex h-full flex-col bg-surface', isWide ? 'w-84 shrink-0 border-l' : 'w-full')}
    >
      <header className="flex h-14 shrink-0 items-center justify-between border-b pr-3 pl-5">
        <h2 className="font-semibold tracking-tight">{title}</h2>
        <IconButton label={text.close} onClick={() => (isWide ? showPanel(undefined) : history.back())}>
          <X size={17} />
        </IconButton>
      </header>
      <Boundary>{children}</Boundary>
    </aside>
  );
}

const PLACE = 'panel';

/** On a phone it is a place of its own: one goes back from it to the conversation. */
function useWayBack(isWide: boolean): void {
  useEffect(() => {
    if (isWide) return;
    // It is, where the page was loaded anew or one went back and forth.
    const isThere = history.state === PLACE;
    if (!isThere) history.pushState(PLACE, '');
    const close = () => showPanel(undefined);
    addEventListener('popstate', close);
    return () => removeEventListener('popstate', close);
  }, [isWide]);
}
