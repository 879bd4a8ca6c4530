import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tokenize } from '../src/markdown/highlight';

function classesOf(code: string, language: string): Record<string, string | undefined> {
  return Object.fromEntries((tokenize(code, language) ?? []).map(({ text, tokenClass }) => [text.trim(), tokenClass]));
}

test('tokens are classified by the grammar of their language', () => {
  expect(classesOf('// note\nconst answer = "x" + 42;', 'ts')).toMatchObject({ '// note': 'comment', const: 'keyword', '"x"': 'text', '42': 'number' });
  expect(classesOf('-old\n+new', 'diff')).toMatchObject({ '-old': 'removed', '+new': 'added' });
  expect(classesOf('fn main() {}', 'rust')).toMatchObject({ fn: 'keyword', main: 'name' });
});

test('the tokens add up to the original code', () => {
  const part = fc.constantFrom('<script>', '/*', '*/', '"', "'", '`${', '}', '\n', '\\', '{', 'fn ', 'x', '</', '#', '&lt;', '\u202e');
  const code = fc.array(part, { maxLength: 60 }).map((parts) => parts.join(''));
  const language = fc.constantFrom('ts', 'rust', 'html', 'bash', 'python', 'diff', 'json', 'yaml', 'markdown', 'css', 'sql', 'c');
  fc.assert(
    fc.property(code, language, (written, name) => {
      expect((tokenize(written, name) ?? []).map(({ text }) => text).join('')).toBe(written);
    }),
  );
});

test('code in an unknown language or above the maximum length stays plain', () => {
  for (const name of ['', 'klingon', '__proto__', 'constructor']) expect(tokenize('let x', name), name).toBeUndefined();
  expect(tokenize('x'.repeat(10_001), 'ts')).toBeUndefined();
});
