import { useState } from 'react';

/** Copies, and says for a moment that it did. */
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

/** Pages that are not served securely have no clipboard, as those of a hub on a local network; the old way works there. */
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
