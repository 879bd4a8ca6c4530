/** Text with Markdown, drawn by streamdown. Loaded apart from the rest, when the first such text is there. */
import { ImageOff } from 'lucide-react';
import { isValidElement, memo, useMemo, useState, type ReactNode } from 'react';
import { defaultRemarkPlugins, parseMarkdownIntoBlocks, Streamdown, type Components } from 'streamdown';
import { text } from '../text';
import { growingSplit } from './blocks';
import { CodeFence } from './CodeFence';
import { safeUrl } from './links';
import { markMentions, markupAsText } from './plugins';
import { stripDirectionMarks } from './hiddenCharacters';

const REMARK = [...Object.values(defaultRemarkPlugins), markupAsText];

/** What streamdown hands over: attributes of whatever stood in the text, which are anybody's. */
type Given = object;

function of(given: Given, name: string): unknown {
  return (given as Record<string, unknown>)[name];
}

function Link(given: Given) {
  const children = of(given, 'children') as ReactNode;
  const url = safeUrl(word(of(given, 'href')));
  if (url === undefined) return <span>{children}</span>;
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer nofollow ugc" title={url.href}>
      {children}
    </a>
  );
}

/** Somebody else's server would learn who looks; the policy of the page would not load it either. */
function RemoteImage(given: Given) {
  const alt = word(of(given, 'alt'));
  const url = safeUrl(word(of(given, 'src')));
  if (url === undefined) return <span>{alt}</span>;
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer nofollow ugc" title={url.href}>
      <ImageOff size={14} className="mr-1 inline align-[-2px]" aria-hidden />
      {alt === undefined || alt === '' ? text.timeline.remoteImage(url.host) : alt}
    </a>
  );
}

function Fence(given: Given) {
  const block = of(given, 'children');
  if (!isValidElement<Given>(block)) return <pre>{block as ReactNode}</pre>;
  const language = word(of(block.props, 'className'))?.match(/language-(\S+)/)?.[1]?.toLowerCase();
  return <CodeFence language={language} code={[of(block.props, 'children')].flat().map(word).join('')} />;
}

function Code(given: Given) {
  return <code className={word(of(given, 'className'))}>{of(given, 'children') as ReactNode}</code>;
}

function word(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** As they are: what they look like stands in our own style sheet. */
const AS_THEY_ARE = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'p', 'ul', 'ol', 'li', 'blockquote', 'hr', 'strong'] as const;
const OF_TABLES = ['table', 'thead', 'tbody', 'tr', 'th', 'td', 'sup', 'sub', 'section'] as const;

const COMPONENTS: Components = {
  ...Object.fromEntries([...AS_THEY_ARE, ...OF_TABLES].map((tag) => [tag, tag])),
  a: Link,
  img: RemoteImage,
  pre: Fence,
  code: Code,
  inlineCode: Code,
};

/** One and the same for all, or every block would be read anew with each picture. */
function safeAddress(url: string): string {
  return safeUrl(url)?.href ?? '';
}

interface Props {
  children: string;
  isStreaming: boolean;
  names: readonly string[];
  mine: readonly string[];
}

export default memo(function RichText({ children, isStreaming, names, mine }: Props) {
  const rehype = useMemo(() => [[markMentions, { names, mine }] as [typeof markMentions, object]], [names, mine]);
  const [split] = useState(() => growingSplit(parseMarkdownIntoBlocks));
  return (
    <Streamdown
      mode={isStreaming ? 'streaming' : 'static'}
      parseIncompleteMarkdown={isStreaming}
      className="space-y-2"
      parseMarkdownIntoBlocksFn={split}
      controls={false}
      remarkPlugins={REMARK}
      rehypePlugins={rehype}
      urlTransform={safeAddress}
      components={COMPONENTS}
    >
      {stripDirectionMarks(children)}
    </Streamdown>
  );
});
