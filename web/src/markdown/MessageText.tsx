import { lazy, memo, Suspense, useMemo } from 'react';
import { isOneOf, splitMentions } from './mentions';
import { useThrottledText } from './throttled';
import { stripDirectionMarks } from './hiddenCharacters';

const RichText = lazy(() => import('./RichText'));

/**
 * Preloads the Markdown renderer before sign-in, so that the first messages are not drawn as plain text
 * first.
 */
export function prepareRichText(): void {
  // A failed import is repeated when the component is rendered.
  import('./RichText').catch(() => undefined);
}

/** Matches text that may contain Markdown. */
const RICH = /[*_`#>[\]|~<\\]|^\s*(?:[-+]|\d+[.)])\s|https?:|www\.|\n|@\S+\.\w/m;

interface Props {
  text: string;
  isStreaming?: boolean;
  /** Whether to show a cursor after the last word. */
  hasCursor?: boolean;
  names: readonly string[];
  mine: readonly string[];
}

/** Text of a message. Plain text is rendered without the Markdown renderer. */
export const MessageText = memo(function MessageText({ text: fullText, isStreaming = false, hasCursor = false, names: mentioned, mine }: Props) {
  // The hub reports a mention under the display name even if the message uses the username: highlight both.
  const names = useMemo(() => (mentioned.some((name) => isOneOf(name, mine)) ? [...mentioned, ...mine] : mentioned), [mentioned, mine]);
  const text = useThrottledText(fullText, isStreaming);
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
