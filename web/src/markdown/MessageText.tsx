import { lazy, memo, Suspense, useMemo } from 'react';
import { isOneOf, splitMentions } from './mentions';
import { useThrottledText } from './throttled';
import { stripDirectionMarks } from './hiddenCharacters';

const RichText = lazy(() => import('./RichText'));

/** Fetched before somebody is in, so that what they read first need not change before their eyes. */
export function prepareRichText(): void {
  // Whoever draws with it asks again.
  import('./RichText').catch(() => undefined);
}

/** Anything that Markdown could mean something by. */
const RICH = /[*_`#>[\]|~<\\]|^\s*(?:[-+]|\d+[.)])\s|https?:|www\.|\n|@\S+\.\w/m;

interface Props {
  text: string;
  isStreaming?: boolean;
  /** Whether it shows behind its last word that there is more to come. */
  hasCursor?: boolean;
  names: readonly string[];
  mine: readonly string[];
}

/** What somebody said. Most of it is a plain line, which needs nothing but itself. */
export const MessageText = memo(function MessageText({ text: said, isStreaming = false, hasCursor = false, names: called, mine }: Props) {
  // Who calls somebody by the name for signing in has the hub tell the other one.
  const names = useMemo(() => (called.some((name) => isOneOf(name, mine)) ? [...called, ...mine] : called), [called, mine]);
  const text = useThrottledText(said, isStreaming);
  const plain = <PlainText {...{ text, names, mine }} />;
  return (
    <div className="prose-parlor" dir="auto" data-growing={hasCursor || undefined}>
      {RICH.test(text) ? (
        <Suspense fallback={plain}>
          <RichText {...{ isStreaming, names, mine }}>{text}</RichText>
        </Suspense>
      ) : (
        plain
      )}
    </div>
  );
});

function PlainText({ text, names, mine }: Pick<Props, 'text' | 'names' | 'mine'>) {
  return (
    <p>
      {splitMentions(stripDirectionMarks(text), names).map((part, index) =>
        part.name === undefined ? (
          part.text
        ) : (
          <span key={index} className={isOneOf(part.name, mine) ? 'mention mention-me' : 'mention'}>
            {part.text}
          </span>
        ),
      )}
    </p>
  );
}
