/** Finds mentions in the text of a message. */

export interface Part {
  text: string;
  /** Mentioned name, if this part is a mention. */
  name?: string;
}

/** Splits a text at `@name`. Longer names win, and case is ignored. */
export function splitMentions(text: string, names: readonly string[]): Part[] {
  if (names.length === 0 || !text.includes('@')) return [{ text }];
  const longestFirst = names.toSorted((a, b) => b.length - a.length).map(escaped);
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])@(${longestFirst.join('|')})(?![\\p{L}\\p{N}_])`, 'giu');
  const parts: Part[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > from) parts.push({ text: text.slice(from, match.index) });
    parts.push({ text: match[0], name: match[1] ?? '' });
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push({ text: text.slice(from) });
  return parts;
}

export function isOneOf(name: string, names: readonly string[]): boolean {
  return names.some((other) => other.toLowerCase() === name.toLowerCase());
}

function escaped(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
}
