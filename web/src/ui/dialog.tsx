/**
 * A window above the page. Radix keeps the focus in it; its overlay is left out, as that writes a style element into
 * the document, which our policy forbids.
 */
import { X } from 'lucide-react';
import { Dialog as Radix } from 'radix-ui';
import { useState, type ReactNode } from 'react';
import { text } from '../text';
import { Boundary, ReloadButton } from './boundary';
import { Button, IconButton } from './button';
import { classes } from './classes';

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  lead?: string;
  /** Only for those who do not see it; then all the room is the content's. */
  titleHidden?: boolean;
  className?: string;
  children: ReactNode;
}

export function Dialog({ open, onClose, title, lead, titleHidden, className, children }: Props) {
  // Whoever closes it goes on where they were. Radix knows only of buttons that open a window, and ours are opened from anywhere.
  const [before] = useState(() => document.activeElement);
  const goBack = (event: Event) => {
    event.preventDefault();
    // One may lead to the next.
    if (document.querySelector('[role=dialog]') !== null) return;
    const isThere = before instanceof HTMLElement && before.isConnected && before !== document.body;
    const place = isThere ? before : document.querySelector<HTMLElement>('main textarea');
    place?.focus({ preventScroll: true });
  };
  return (
    <Radix.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Radix.Portal>
        <div className="fixed inset-0 z-40 bg-ground/70 backdrop-blur-[2px]" aria-hidden />
        <Radix.Content
          aria-describedby={undefined}
          onCloseAutoFocus={goBack}
          className={classes(
            'fixed top-[12vh] left-1/2 z-50 max-h-[80vh] w-[min(26rem,calc(100vw-2rem))] -translate-x-1/2',
            'overflow-y-auto rounded-2xl border bg-surface shadow-float outline-none',
            titleHidden !== true && 'p-5',
            className,
          )}
        >
          {titleHidden === true ? (
            <Radix.Title className="sr-only">{title}</Radix.Title>
          ) : (
            <header className="mb-4 flex items-start justify-between gap-4">
              <div>
                <Radix.Title className="text-lg font-semibold tracking-tight">{title}</Radix.Title>
                {lead !== undefined && <p className="mt-0.5 text-sm text-soft">{lead}</p>}
              </div>
              <Radix.Close asChild>
                <IconButton label={text.close} className="-mt-1 -mr-1">
                  <X size={17} />
                </IconButton>
              </Radix.Close>
            </header>
          )}
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** Around a component that is a dialog: when it fails, a dialog that can be closed says so. */
export function DialogBoundary({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  const failed = (
    <Dialog open onClose={onClose} title={text.partFailed}>
      <ReloadButton />
    </Dialog>
  );
  return <Boundary fallback={failed}>{children}</Boundary>;
}

/** Below a form in a window. */
export function FormButtons({ isBusy, onClose }: { isBusy: boolean; onClose: () => void }) {
  return (
    <div className="flex justify-end gap-2">
      <Button look="plain" onClick={onClose}>
        {text.cancel}
      </Button>
      <Button look="primary" type="submit" disabled={isBusy}>
        {text.save}
      </Button>
    </div>
  );
}

interface SureProps {
  /** What is about to be done, in a word or two. */
  title: string;
  lead: string;
  isBusy: boolean;
  onGo: () => void;
  onClose: () => void;
}

/** Asks before something is done that cannot be taken back. */
export function ConfirmDialog({ title, lead, isBusy, onGo, onClose }: SureProps) {
  return (
    <Dialog open onClose={onClose} title={title} lead={lead}>
      <div className="flex justify-end gap-2">
        <Button look="plain" onClick={onClose}>
          {text.cancel}
        </Button>
        <Button look="danger" disabled={isBusy} onClick={onGo}>
          {title}
        </Button>
      </div>
    </Dialog>
  );
}
