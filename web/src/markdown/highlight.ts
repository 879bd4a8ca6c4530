/** Syntax highlighting. In a separate script, loaded when the first code block with a language is shown. */
import { common, createLowlight } from 'lowlight';

const grammars = createLowlight(common);

/**
 * Maximum length of highlighted code. Longer blocks stay plain, because parsing them would block scrolling.
 */
const MAX_CODE_CHARS = 10_000;

export interface CodeToken {
  text: string;
  tokenClass?: TokenClass;
}

export type TokenClass = 'comment' | 'keyword' | 'text' | 'number' | 'name' | 'type' | 'added' | 'removed';

const TOKEN_CLASSES: Record<string, TokenClass> = {
  comment: 'comment', quote: 'comment', doctag: 'comment', meta: 'comment',
  keyword: 'keyword', 'selector-tag': 'keyword', 'template-tag': 'keyword', section: 'keyword', tag: 'keyword',
  string: 'text', regexp: 'text', 'meta-string': 'text', symbol: 'text', link: 'text', char: 'text',
  number: 'number', literal: 'number', bullet: 'number',
  title: 'name', name: 'name', attr: 'name', attribute: 'name', property: 'name', 'selector-class': 'name', 'selector-id': 'name',
  type: 'type', built_in: 'type', class: 'type', variable: 'type', 'template-variable': 'type', params: 'type',
  addition: 'added', deletion: 'removed',
};

interface Node {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: Node[];
}

/** Tokens of the code in order. `undefined` if the language is unknown or the code is too long. */
export function tokenize(code: string, language: string): CodeToken[] | undefined {
  if (code.length > MAX_CODE_CHARS || !grammars.registered(language)) return undefined;
  const tokens: CodeToken[] = [];
  const walk = (node: Node, tokenClass: TokenClass | undefined): void => {
    if (node.value !== undefined) tokens.push(tokenClass === undefined ? { text: node.value } : { text: node.value, tokenClass });
    const inner = classOf(node) ?? tokenClass;
    node.children?.forEach((child) => walk(child, inner));
  };
  walk(grammars.highlight(language, code) as Node, undefined);
  return tokens;
}

function classOf({ properties }: Node): TokenClass | undefined {
  const [first] = Array.isArray(properties?.className) ? (properties.className as unknown[]) : [];
  return typeof first === 'string' ? TOKEN_CLASSES[first.replace(/^hljs-/, '')] : undefined;
}
