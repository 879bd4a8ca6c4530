import { useState } from 'react';

/** Copies, and says for a moment that it did. */
export function useCopy(): [boolean, (content: string) => void] {
  const [isCopied, setCopied] = useState(false);
  const copy = (content: string) => {
    void navigator.clipboard?.writeText(content).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return [isCopied, copy];
}
