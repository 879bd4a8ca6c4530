/** The messages by keyboard: up from the field in which one writes, up and down among them, Escape back. */
import type { KeyboardEvent } from 'react';

/** From where one writes to what was said last. */
export function focusNewest(): void {
  [...document.querySelectorAll<HTMLElement>('[role=log] article')].at(-1)?.focus();
}

/** For the list of messages. Its rows near the screen are all there, so the next one always is. */
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
