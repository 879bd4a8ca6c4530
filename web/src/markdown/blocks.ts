/** Splits a text that grows at its end: what stands well before the end is not looked at again. */

type Split = (text: string) => string[];

/** The last block may become another with the next word, and the one before it may be joined by it. */
const UNSETTLED = 2;

export function growingSplit(split: Split): Split {
  let settled: string[] = [];
  let before = '';
  return (text) => {
    if (!text.startsWith(before)) {
      settled = [];
      before = '';
    }
    const rest = split(text.slice(before.length));
    const blocks = [...settled, ...rest];
    const fresh = rest.slice(0, -UNSETTLED);
    // Some texts are not cut into pieces but changed, such as those with footnotes: they are one block, always.
    if (fresh.length > 0 && rest.join('') === text.slice(before.length)) {
      settled = [...settled, ...fresh];
      before += fresh.join('');
    }
    return blocks;
  };
}
