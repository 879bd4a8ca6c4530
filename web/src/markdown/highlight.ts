/** What is what in a block of code. Loaded apart from everything else, when the first such block is there. */
import { common, createLowlight } from 'lowlight';

const grammars = createLowlight(common);

/** A longer block stays plain: people scroll through it, and reading it would take the time for that. */
const LONGEST = 10_000;

export interface CodeToken {
  text: string;
  look?: TokenClass;
}

export type TokenClass = 'comment' | 'keyword' | 'text' | 'number' | 'name' | 'type' | 'added' | 'removed';

const LOOKS: Record<string, TokenClass> = {
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

/** The code in pieces, from beginning to end; `undefined` where nobody knows the language. */
export function piecesOf(code: string, language: string): CodeToken[] | undefined {
  if (code.length > LONGEST || !grammars.registered(language)) return undefined;
  const pieces: CodeToken[] = [];
  const walk = (node: Node, look: TokenClass | undefined): void => {
    if (node.value !== undefined) pieces.push(look === undefined ? { text: node.value } : { text: node.value, look });
    const inner = lookOf(node) ?? look;
    node.children?.forEach((child) => walk(child, inner));
  };
  walk(grammars.highlight(language, code) as Node, undefined);
  return pieces;
}

function lookOf({ properties }: Node): TokenClass | undefined {
  const [first] = Array.isArray(properties?.className) ? (properties.className as unknown[]) : [];
  return typeof first === 'string' ? LOOKS[first.replace(/^hljs-/, '')] : undefined;
}
