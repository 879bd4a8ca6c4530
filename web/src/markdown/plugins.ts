/** Plugins for the Markdown and HTML trees between parsing and rendering. */
import { isOneOf, splitMentions } from './mentions';

interface Node {
  type: string;
  value?: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
}

/** Turns HTML in a message into plain text. */
export function markupAsText() {
  return (tree: Node): void => {
    walk(tree, (node) => {
      if (node.type === 'html') node.type = 'text';
      return true;
    });
  };
}

/** Wraps mentions in styled spans, except in code and links. */
export function markMentions({ names, mine }: { names: readonly string[]; mine: readonly string[] }) {
  return (tree: Node): void => {
    walk(tree, (node) => {
      if (node.tagName === 'code' || node.tagName === 'a') return false;
      node.children = node.children?.flatMap((child) => (child.type === 'text' ? withMentions(child, names, mine) : child));
      return true;
    });
  };
}

const MENTION = 'mention';

function withMentions(node: Node, names: readonly string[], mine: readonly string[]): Node[] {
  return splitMentions(node.value ?? '', names).map(({ text, name }) => {
    const content: Node = { type: 'text', value: text };
    if (name === undefined) return content;
    const className = isOneOf(name, mine) ? `${MENTION} mention-me` : MENTION;
    return { type: 'element', tagName: 'span', properties: { className, 'data-mention': '' }, children: [content] };
  });
}

/** Visits the tree depth-first. Descends into a node if `visit` returns true. */
function walk(node: Node, visit: (node: Node) => boolean): void {
  if (node.properties?.['data-mention'] !== undefined) return;
  if (visit(node)) node.children?.forEach((child) => walk(child, visit));
}
