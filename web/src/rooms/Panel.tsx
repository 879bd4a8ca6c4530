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

/** Side panel of a room. On a phone it replaces the messages. */
export function Panel({ title, isWide, children }: Props) {
  usePanelHistory(isWide);
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

const PANEL_STATE = 'panel';

/** On a phone the panel has its own history entry, so that the back button closes it. */
function usePanelHistory(isWide: boolean): void {
  useEffect(() => {
    if (isWide) return;
    // The entry already exists after a reload or after back and forward navigation.
    const hasEntry = history.state === PANEL_STATE;
    if (!hasEntry) history.pushState(PANEL_STATE, '');
    const close = () => showPanel(undefined);
    addEventListener('popstate', close);
    return () => removeEventListener('popstate', close);
  }, [isWide]);
}
