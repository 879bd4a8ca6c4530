/** What is done to the tree of a text between reading and drawing. */
import { isOneOf, splitMentions } from './mentions';

interface Node {
  type: string;
  value?: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
}

/** Markup in a message is text like any other: it is shown, and does nothing. */
export function markupAsText() {
  return (tree: Node): void => {
    walk(tree, (node) => {
      if (node.type === 'html') node.type = 'text';
      return true;
    });
  };
}

/** Marks the names that are called, outside of code. */
export function markMentions({ names, mine }: { names: readonly string[]; mine: readonly string[] }) {
  return (tree: Node): void => {
    walk(tree, (node) => {
      if (node.tagName === 'code' || node.tagName === 'a') return false;
      node.children = node.children?.flatMap((child) => (child.type === 'text' ? marked(child, names, mine) : child));
      return true;
    });
  };
}

const MENTION = 'mention';

function marked(node: Node, names: readonly string[], mine: readonly string[]): Node[] {
  return splitMentions(node.value ?? '', names).map(({ text, name }) => {
    const content: Node = { type: 'text', value: text };
    if (name === undefined) return content;
    const className = isOneOf(name, mine) ? `${MENTION} mention-me` : MENTION;
    return { type: 'element', tagName: 'span', properties: { className, 'data-mention': '' }, children: [content] };
  });
}

/** Goes into a node if asked to. */
function walk(node: Node, visit: (node: Node) => boolean): void {
  if (node.properties?.['data-mention'] !== undefined) return;
  if (visit(node)) node.children?.forEach((child) => walk(child, visit));
}
