/** Keyboard navigation of messages: arrow up from the message field, arrows between messages, Escape back. */
import type { KeyboardEvent } from 'react';

/** Moves the focus from the message field to the newest message. */
export function focusNewest(): void {
  [...document.querySelectorAll<HTMLElement>('[role=log] article')].at(-1)?.focus();
}

/**
 * Key handler of the message list. The virtual list renders rows beyond the screen, so the next one exists.
 */
export function onMessageKey(event: KeyboardEvent<HTMLElement>): void {
  const { target, currentTarget: list, key } = event;
  if (!(target instanceof HTMLElement) || target.tagName !== 'ARTICLE') return;
  const step = key === 'ArrowUp' ? -1 : key === 'ArrowDown' ? 1 : 0;
  if (step === 0 && key !== 'Escape') return;
  event.preventDefault();
  const rows = [...list.querySelectorAll<HTMLElement>('article')];
  const next = step === 0 ? undefined : rows[rows.indexOf(target) + step];
  if (next !== undefined) next.focus();
  else if (step >= 0) list.closest('main, aside')?.querySelector('textarea')?.focus();
}
