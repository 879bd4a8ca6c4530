import { Check, Copy } from 'lucide-react';
import { lazy, Suspense } from 'react';
import { text } from '../text';
import { useCopy } from '../ui/copy';

const ColouredCode = lazy(() => import('./ColouredCode'));

/** Code block with its language and a copy button. */
export function CodeFence({ language, code }: { language?: string; code: string }) {
  const [isCopied, copy] = useCopy();
  return (
    <figure className="group/code relative my-2 overflow-hidden rounded-lg border bg-code">
      <figcaption className="flex h-7 items-center justify-between border-b px-3 text-xs text-faint">
        <span>{language ?? ''}</span>
        <button
          type="button"
          className="-mr-1.5 inline-flex items-center gap-1 rounded px-1.5 py-0.5 hover:bg-hover hover:text-ink"
          onClick={() => copy(code)}
        >
          {isCopied ? <Check size={12} /> : <Copy size={12} />}
          {isCopied ? text.copied : text.copy}
        </button>
      </figcaption>
      {/* Focusable, so that it can be scrolled with the keyboard. */}
      <pre tabIndex={0} className="overflow-x-auto px-3 py-2.5 font-mono text-[0.8125rem] leading-relaxed">
        <code>
          {language === undefined ? (
            code
          ) : (
            <Suspense fallback={code}>
              <ColouredCode code={code} language={language} />
            </Suspense>
          )}
        </code>
      </pre>
    </figure>
  );
}
