/**
 * Parses terminal output into lines of coloured text. The hub strips all escapes but colours, cursor and
 * erase.
 */

export interface Span {
  text: string;
  /** ANSI colour from 0 to 7. Absent for the default colour. */
  colour?: number;
  isBold?: boolean;
}

type Style = Omit<Span, 'text'>;
type Cell = { letter: string; style: Style };

const TOKEN = /\u001b\[([0-9;]*)([A-Za-z])|\r\n|[\r\n\b]|[^\u001b\r\n\b]+|\u001b/g;

export function terminalLines(output: string): Span[][] {
  const lines: Cell[][] = [[]];
  let column = 0;
  let style: Style = {};
  for (const [token, parameters, command] of output.matchAll(TOKEN)) {
    const line = lines.at(-1) ?? [];
    if (token === '\n' || token === '\r\n') {
      lines.push([]);
      column = 0;
    } else if (token === '\r') column = 0;
    else if (token === '\b') column = Math.max(0, column - 1);
    else if (command === 'm') style = styled(style, parameters ?? '');
    else if (command === 'K') line.length = Math.min(line.length, column);
    else if (command === undefined && token !== '\u001b') {
      for (const letter of token) {
        while (line.length < column) line.push({ letter: ' ', style: {} });
        line[column] = { letter, style };
        column += 1;
      }
    }
  }
  return lines.map(spans);
}

function styled(style: Style, parameters: string): Style {
  return parameters.split(';').reduce<Style>((next, parameter) => {
    const code = Number(parameter === '' ? '0' : parameter);
    if (code === 0) return {};
    if (code === 1) return { ...next, isBold: true };
    if (code >= 30 && code <= 37) return { ...next, colour: code - 30 };
    if (code >= 90 && code <= 97) return { ...next, colour: code - 90 };
    if (code === 39) return { ...next, colour: undefined };
    return next;
  }, style);
}

function spans(line: Cell[]): Span[] {
  const result: Span[] = [];
  for (const { letter, style } of line) {
    const last = result.at(-1);
    if (last !== undefined && last.colour === style.colour && last.isBold === style.isBold) last.text += letter;
    else result.push({ text: letter, ...style });
  }
  return result;
}
