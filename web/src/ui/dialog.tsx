/**
 * Modal dialog. Radix traps the focus in it. Its overlay component is not used, because it inserts a style
 * element, which the content security policy forbids.
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
  /** Shows the title to screen readers only, and removes the padding. */
  titleHidden?: boolean;
  className?: string;
  children: ReactNode;
}

export function Dialog({ open, onClose, title, lead, titleHidden, className, children }: Props) {
  // Restores the focus on close. Radix does so only for its own trigger buttons, which are not used here.
  const [previousFocus] = useState(() => document.activeElement);
  const restoreFocus = (event: Event) => {
    event.preventDefault();
    // Another dialog has opened and owns the focus.
    if (document.querySelector('[role=dialog]') !== null) return;
    const canRestore = previousFocus instanceof HTMLElement && previousFocus.isConnected && previousFocus !== document.body;
    const target = canRestore ? previousFocus : document.querySelector<HTMLElement>('main textarea');
    target?.focus({ preventScroll: true });
  };
  return (
    <Radix.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Radix.Portal>
        <div className="fixed inset-0 z-40 bg-ground/70 backdrop-blur-[2px]" aria-hidden />
        <Radix.Content
          aria-describedby={undefined}
          onCloseAutoFocus={restoreFocus}
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

/** Error boundary for a dialog: shows the error in a dialog that can be closed. */
export function DialogBoundary({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  const failed = (
    <Dialog open onClose={onClose} title={text.partFailed}>
      <ReloadButton />
    </Dialog>
  );
  return <Boundary fallback={failed}>{children}</Boundary>;
}

/** Cancel and save buttons of a form in a dialog. */
export function FormButtons({ isBusy, onClose }: { isBusy: boolean; onClose: () => void }) {
  return (
    <div className="flex justify-end gap-2">
      <Button variant="plain" onClick={onClose}>
        {text.cancel}
      </Button>
      <Button variant="primary" type="submit" disabled={isBusy}>
        {text.save}
      </Button>
    </div>
  );
}

interface ConfirmProps {
  /** Short name of the action, also the label of the confirm button. */
  title: string;
  lead: string;
  isBusy: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asks for confirmation of a destructive action. */
export function ConfirmDialog({ title, lead, isBusy, onConfirm, onClose }: ConfirmProps) {
  return (
    <Dialog open onClose={onClose} title={title} lead={lead}>
      <div className="flex justify-end gap-2">
        <Button variant="plain" onClick={onClose}>
          {text.cancel}
        </Button>
        <Button variant="danger" disabled={isBusy} onClick={onConfirm}>
          {title}
        </Button>
      </div>
    </Dialog>
  );
}
