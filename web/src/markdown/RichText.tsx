/** Markdown rendered by streamdown. In a separate script, loaded when the first Markdown text is shown. */
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

/** Props from streamdown. They come from message text and are untrusted. */
type UntrustedProps = object;

function prop(props: UntrustedProps, name: string): unknown {
  return (props as Record<string, unknown>)[name];
}

function Link(props: UntrustedProps) {
  const children = prop(props, 'children') as ReactNode;
  const url = safeUrl(asString(prop(props, 'href')));
  if (url === undefined) return <span>{children}</span>;
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer nofollow ugc" title={url.href}>
      {children}
    </a>
  );
}

/**
 * Remote images become links: loading one would reveal the reader to its server, and the CSP blocks it
 * anyway.
 */
function RemoteImage(props: UntrustedProps) {
  const alt = asString(prop(props, 'alt'));
  const url = safeUrl(asString(prop(props, 'src')));
  if (url === undefined) return <span>{alt}</span>;
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer nofollow ugc" title={url.href}>
      <ImageOff size={14} className="mr-1 inline align-[-2px]" aria-hidden />
      {alt === undefined || alt === '' ? text.timeline.remoteImage(url.host) : alt}
    </a>
  );
}

function Fence(props: UntrustedProps) {
  const block = prop(props, 'children');
  if (!isValidElement<UntrustedProps>(block)) return <pre>{block as ReactNode}</pre>;
  const language = asString(prop(block.props, 'className'))?.match(/language-(\S+)/)?.[1]?.toLowerCase();
  return <CodeFence language={language} code={[prop(block.props, 'children')].flat().map(asString).join('')} />;
}

function Code(props: UntrustedProps) {
  return <code className={asString(prop(props, 'className'))}>{prop(props, 'children') as ReactNode}</code>;
}

function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Tags rendered without a component. `markdown.css` styles them. */
const PLAIN_TAGS = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'p', 'ul', 'ol', 'li', 'blockquote', 'hr', 'strong'] as const;
const TABLE_TAGS = ['table', 'thead', 'tbody', 'tr', 'th', 'td', 'sup', 'sub', 'section'] as const;

const COMPONENTS: Components = {
  ...Object.fromEntries([...PLAIN_TAGS, ...TABLE_TAGS].map((tag) => [tag, tag])),
  a: Link,
  img: RemoteImage,
  pre: Fence,
  code: Code,
  inlineCode: Code,
};

/** Defined once: a new function per render would make streamdown parse every block again. */
function safeHref(url: string): string {
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
      urlTransform={safeHref}
      components={COMPONENTS}
    >
      {stripDirectionMarks(children)}
    </Streamdown>
  );
});
