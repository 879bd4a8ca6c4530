import { parseMarkdownIntoBlocks } from 'streamdown';
import { describe, expect, test } from 'vitest';
import { choicesFor, complete, triggerAt } from '../src/composer/completion';
import { growingSplit } from '../src/markdown/blocks';
import { safeUrl } from '../src/markdown/links';
import { splitMentions } from '../src/markdown/mentions';
import { stripDirectionMarks, escapeHidden } from '../src/markdown/hiddenCharacters';
import { parseRoute, roomPath } from '../src/router';
import { terminalLines } from '../src/runs/ansi';
import { rowsOf } from '../src/timeline/rows';
import { fromMessage } from '../src/live/messages';
import { message, reply } from './factories';

test('only http, https and mailto links are allowed', () => {
  const cases: [string | undefined, boolean][] = [
    ['https://example.org/a?b#c', true],
    ['http://example.org', true],
    ['mailto:ada@example.org', true],
    ['javascript:alert(1)', false],
    [' JaVaScRiPt:alert(1)', false],
    ['java\nscript:alert(1)', false],
    ['data:text/html,<script>', false],
    ['vbscript:x', false],
    ['blob:https://example.org/1', false],
    ['file:///etc/passwd', false],
    ['/api/auth/logout', false],
    ['//example.org', false],
    [undefined, false],
  ];
  for (const [url, isSafe] of cases) expect(safeUrl(url) !== undefined, url).toBe(isSafe);
});

test('hidden characters are escaped, and direction marks are removed from message text', () => {
  expect(escapeHidden('rm \u202egnp.exe\u0007')).toBe('rm \\u{202e}gnp.exe\\u{7}');
  expect(escapeHidden('a\u200bb\u{e0041}c')).toBe('a\\u{200b}b\\u{e0041}c');
  expect(escapeHidden('tab\tand\nline, Übergröße, 漢字, 👍')).toBe('tab\tand\nline, Übergröße, 漢字, 👍');
  expect(stripDirectionMarks('a\u202eb\u2066c')).toBe('abc');
});

describe('mentions', () => {
  const check = (text: string, names: string[], expected: string[]) =>
    expect(splitMentions(text, names).flatMap(({ name }) => name ?? [])).toEqual(expected);

  test('are matched case-insensitively, longest name first', () => {
    check('Hi @ada lovelace and @ADA.', ['Ada', 'Ada Lovelace'], ['ada lovelace', 'ADA']);
  });
  test('are whole words', () => {
    check('mail@ada.org @adam @ada_x', ['ada'], []);
  });
  test('may contain special characters of regular expressions', () => {
    check('@c++ (lead)', ['c++'], ['c++']);
  });
});

describe('completion', () => {
  const members = ['Ada Lovelace', 'guide', 'Grace Hopper'].map((displayName, index) => ({
    roomId: 'r',
    memberId: displayName.toLowerCase(),
    memberType: index === 1 ? ('agent' as const) : ('user' as const),
    role: 'member' as const,
    notificationPref: 'all' as const,
    displayName,
    joinedAt: '',
  }));
  test('detects mentions, commands and emoji at the caret', () => {
    expect(triggerAt('hello @gu', 9)).toEqual({ kind: 'mention', query: 'gu', from: 6 });
    expect(triggerAt('/fr', 3)).toEqual({ kind: 'command', query: 'fr', from: 0 });
    expect(triggerAt('well :tad', 9)).toEqual({ kind: 'emoji', query: 'tad', from: 5 });
    expect(triggerAt('a@b', 3)).toBeUndefined();
    expect(triggerAt('at 10:30', 8)).toBeUndefined();
    expect(triggerAt('and/or', 6)).toBeUndefined();
  });
  test('offers other members, agents first, and inserts the chosen name', () => {
    const trigger = triggerAt('hi @g!', 5);
    if (trigger === undefined) throw new Error('expected a match');
    const choices = choicesFor(trigger, members, 'ada lovelace');
    expect(choices.map(({ label }) => label)).toEqual(['guide', 'Grace Hopper']);
    const [choice] = choices;
    if (choice === undefined) throw new Error('expected a match');
    expect(complete('hi @g!', 5, trigger, choice)).toEqual({ text: 'hi @guide !', caret: 10 });
  });
});

test('growing text is split into the same blocks as the full text', () => {
  const text = '# One\n\nTwo **bold**\n\n- a\n- b\n\n```ts\nconst x = 1;\n\nlet y;\n```\n\n| a |\n| - |\n| b |\n\nEnd\n===\n\n<b>\n\nx\n';
  const parsedLengths: number[] = [];
  const split = growingSplit((part) => {
    parsedLengths.push(part.length);
    return parseMarkdownIntoBlocks(part);
  });
  for (let end = 1; end <= text.length; end += 1) {
    const part = text.slice(0, end);
    expect(split(part)).toEqual(parseMarkdownIntoBlocks(part));
  }
  expect(parsedLengths.at(-1)).toBeLessThan(text.length / 2);
  expect(split('Another')).toEqual(['Another']);
  const withFootnote = 'A[^1]\n\nB\n\nC\n\n[^1]: note';
  expect(split(withFootnote)).toEqual(parseMarkdownIntoBlocks(withFootnote));
});

test('paths parse to the routes they were built from', () => {
  expect(parseRoute(roomPath('a b/c', 'm'), '', '')).toEqual({ name: 'room', roomId: 'a b/c', messageId: 'm' });
  expect(parseRoute('/app/rooms/welcome', '', '')).toEqual({ name: 'room', roomId: 'welcome' });
  expect(parseRoute('/setup', '', '#token=pls_1')).toEqual({ name: 'setup', token: 'pls_1' });
  expect(parseRoute('/app/%E0%A4%A', '', '')).toEqual({ name: 'home' });
  expect(parseRoute('/', '', '')).toEqual({ name: 'home' });
});

test('terminal output overwrites lines, keeps colours and drops other escapes', () => {
  const output = '$ brew\r\n\u001b[33mheating\u001b[0m  40 %\r\u001b[32mready\u001b[0m  100 %\u001b[K\u001b]0;x';
  const text = terminalLines(output).map((line) => line.map((span) => span.text).join(''));
  expect(text).toEqual(['$ brew', 'ready  100 %]0;x']);
  expect(terminalLines(output)[1]?.[0]).toEqual({ text: 'ready', colour: 2 });
});

test('rows repeat the sender after a gap, for a reply, and on a new day', () => {
  const at = (id: string, seq: number, createdAt: string) => fromMessage(message({ id, seq, createdAt }));
  const rows = rowsOf(
    [
      at('a', 1, '2026-01-02T12:00:00Z'),
      at('b', 2, '2026-01-02T12:01:00Z'),
      at('c', 3, '2026-01-02T12:30:00Z'),
      { ...at('d', 4, '2026-01-02T12:31:00Z'), replyToId: 'a' },
      at('e', 5, '2026-01-05T12:31:00Z'),
      fromMessage(reply({ id: 'f', seq: 6, createdAt: '2026-01-05T12:31:01Z' })),
    ],
    true,
  );
  expect(rows.map((row) => (row.kind === 'message' ? [row.key, row.isContinued] : row.kind))).toEqual([
    'beginning',
    'day',
    ['a', false],
    ['b', true],
    ['c', false],
    ['d', false],
    'day',
    ['e', false],
    ['f', false],
  ]);
});
