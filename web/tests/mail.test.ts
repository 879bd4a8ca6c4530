import { expect, test } from 'vitest';
import type { AutoRunSetting, RoutedMessage } from '../src/generated/api';
import { changesOf, content, entryText, excerpt, formOf, hasAutomaticTurns, isLong, isSessionId, itemsOf, mailboxName, reasonName } from '../src/mail/mail';

const MESSAGE: RoutedMessage = {
  id: 'm',
  path: 'slack/team',
  from: 'bridge',
  fromName: 'bridge',
  fromType: 'source',
  command: 'message',
  source: 'slack',
  at: '2026-01-01T00:00:00.000Z',
};
const ON: AutoRunSetting = { enabled: true, triageModel: 'small', debounceMs: 500, maxBatchSize: 5 };

test('the excerpt of a message is its text, or its payload in one line', () => {
  expect(excerpt({ ...MESSAGE, payload: { text: ' first line\nsecond' } })).toBe('first line');
  expect(excerpt({ ...MESSAGE, text: 'posted in a room' })).toBe('posted in a room');
  expect(excerpt({ ...MESSAGE, payload: { n: 1 } })).toBe('{"n":1}');
  expect(excerpt({ ...MESSAGE, payload: { text: '' } })).toBe('{"text":""}');
  expect(excerpt({ ...MESSAGE, payload: { text: 5 } })).toBe('{"text":5}');
  expect(excerpt(MESSAGE)).toBe('');
  expect(excerpt({ ...MESSAGE, payload: { text: 'a'.repeat(500) } })).toHaveLength(161);
});

test('the content of a message is its text, or its payload as JSON', () => {
  expect(content({ ...MESSAGE, text: 'hello' })).toBe('hello');
  expect(content({ ...MESSAGE, payload: { a: [1] } })).toBe('{\n  "a": [\n    1\n  ]\n}');
});

test('an error without a reason of its own has the name of its outcome', () => {
  expect(entryText({ role: 'system', text: 'cancelled' })).toBe('Stopped by a user');
  expect(entryText({ role: 'system', text: 'no memory' })).toBe('no memory');
  expect(entryText({ role: 'user', text: 'cancelled\n' })).toBe('cancelled');
});

test('texts of many characters or lines are folded', () => {
  expect([isLong('a'.repeat(1200)), isLong('a'.repeat(1201))]).toEqual([false, true]);
  expect([isLong('a\n'.repeat(11)), isLong('a\n'.repeat(12))]).toEqual([false, true]);
});

test('ids of sessions are one segment of at most 64 characters', () => {
  for (const id of ['main', 'Side-2_b', 'x'.repeat(64)]) expect(isSessionId(id)).toBe(true);
  for (const id of ['', ' a', 'a/b', 'a:b', '..', 'ä', 'x'.repeat(65)]) expect(isSessionId(id)).toBe(false);
});

test('an item that moved to the next page appears once', () => {
  const pages = [{ items: ['c', 'b'] }, { items: ['b', 'a'] }];
  expect(itemsOf(pages, (item) => item)).toEqual(['c', 'b', 'a']);
  expect(itemsOf(undefined, String)).toEqual([]);
});

test('a form of automatic turns returns the setting it was filled from', () => {
  expect(changesOf(formOf(ON))).toEqual(ON);
  expect(changesOf(formOf({ enabled: false, debounceMs: 3000, maxBatchSize: 20 }))).toEqual({
    enabled: false,
    debounceMs: 3000,
    maxBatchSize: 20,
  });
  expect(changesOf(formOf(null))).toBeNull();
});

test('empty fields of a form leave the defaults of the hub', () => {
  expect(changesOf({ mode: 'on', model: '  ', seconds: '', batch: '' })).toEqual({ enabled: true });
  expect(changesOf({ mode: 'on', model: ' small ', seconds: '0.25', batch: '7' })).toEqual({
    enabled: true,
    triageModel: 'small',
    debounceMs: 250,
    maxBatchSize: 7,
  });
});

test('the setting of a session has precedence over that of its agent', () => {
  expect(hasAutomaticTurns(null, ON)).toBe(true);
  expect(hasAutomaticTurns({ ...ON, enabled: false }, ON)).toBe(false);
  expect(hasAutomaticTurns(ON, null)).toBe(true);
  expect(hasAutomaticTurns(null, null)).toBe(false);
});

test('mailboxes and reasons have readable names', () => {
  expect(mailboxName({ agentId: 'a/b' })).toBe('a/b');
  expect(mailboxName({ agentId: 'a/b', sessionId: 'main' })).toBe('a/b:main');
  expect(reasonName('no_subscribers')).toBe('no subscribers');
  expect(reasonName('run_failed')).toBe('run failed');
});
