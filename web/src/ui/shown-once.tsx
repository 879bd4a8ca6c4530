import { Check, Copy } from 'lucide-react';
import { text } from '../text';
import { Button } from './button';
import { useCopy } from './copy';

/** Text to copy, such as a link, a secret or a command. */
export function ShownOnce({ words }: { words: string }) {
  const [isCopied, copy] = useCopy();
  return (
    <div className="flex items-center gap-3 rounded-xl border bg-raised py-2 pr-2 pl-4">
      <code data-shown-once className="min-w-0 flex-1 font-mono text-sm [overflow-wrap:anywhere] whitespace-pre-wrap select-all">
        {words}
      </code>
      <Button size="small" onClick={() => copy(words)}>
        {isCopied ? <Check size={14} /> : <Copy size={14} />}
        {isCopied ? text.copied : text.copy}
      </Button>
    </div>
  );
}
