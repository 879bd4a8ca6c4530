import fc from 'fast-check';
import { expect, test } from 'vitest';
import { piecesOf } from '../src/markdown/highlight';

function looksOf(code: string, language: string): Record<string, string | undefined> {
  return Object.fromEntries((piecesOf(code, language) ?? []).map(({ text, look }) => [text.trim(), look]));
}

test('words of a language are told apart', () => {
  expect(looksOf('// note\nconst answer = "x" + 42;', 'ts')).toMatchObject({ '// note': 'comment', const: 'keyword', '"x"': 'text', '42': 'number' });
  expect(looksOf('-old\n+new', 'diff')).toMatchObject({ '-old': 'removed', '+new': 'added' });
  expect(looksOf('fn main() {}', 'rust')).toMatchObject({ fn: 'keyword', main: 'name' });
});

test('nothing is added to code, and nothing is left out', () => {
  const part = fc.constantFrom('<script>', '/*', '*/', '"', "'", '`${', '}', '\n', '\\', '{', 'fn ', 'x', '</', '#', '&lt;', '\u202e');
  const code = fc.array(part, { maxLength: 60 }).map((parts) => parts.join(''));
  const language = fc.constantFrom('ts', 'rust', 'html', 'bash', 'python', 'diff', 'json', 'yaml', 'markdown', 'css', 'sql', 'c');
  fc.assert(
    fc.property(code, language, (written, name) => {
      expect((piecesOf(written, name) ?? []).map(({ text }) => text).join('')).toBe(written);
    }),
  );
});

test('a language that nobody knows, and a block that is too long, stay plain', () => {
  for (const name of ['', 'klingon', '__proto__', 'constructor']) expect(piecesOf('let x', name), name).toBeUndefined();
  expect(piecesOf('x'.repeat(10_001), 'ts')).toBeUndefined();
});
