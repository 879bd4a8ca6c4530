/** Splits growing Markdown text into blocks, without parsing the stable part at the beginning again. */

type Split = (text: string) => string[];

/** Number of last blocks that more text can still change or merge. */
const UNSTABLE_BLOCKS = 2;

export function growingSplit(split: Split): Split {
  let stable: string[] = [];
  let stableText = '';
  return (text) => {
    if (!text.startsWith(stableText)) {
      stable = [];
      stableText = '';
    }
    const rest = split(text.slice(stableText.length));
    const blocks = [...stable, ...rest];
    const fresh = rest.slice(0, -UNSTABLE_BLOCKS);
    // For some texts, such as those with footnotes, `split` does not return slices: they are split again each
    // time.
    if (fresh.length > 0 && rest.join('') === text.slice(stableText.length)) {
      stable = [...stable, ...fresh];
      stableText += fresh.join('');
    }
    return blocks;
  };
}
