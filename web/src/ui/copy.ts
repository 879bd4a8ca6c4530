import { useState } from 'react';

/** Copy function, and whether it was called within the last 1.5 seconds. */
export function useCopy(): [boolean, (content: string) => void] {
  const [isCopied, setCopied] = useState(false);
  const copy = (content: string) => {
    void copyText(content).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return [isCopied, copy];
}

/** Copies text. Falls back to `execCommand` without TLS, where the clipboard API does not exist. */
export async function copyText(content: string): Promise<void> {
  if ('clipboard' in navigator) return navigator.clipboard.writeText(content);
  const fill = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', content);
    event.preventDefault();
  };
  document.addEventListener('copy', fill, { once: true });
  document.execCommand('copy');
  document.removeEventListener('copy', fill);
}
