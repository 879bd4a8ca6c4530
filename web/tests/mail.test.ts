import { expect, test } from 'vitest';
import type { AutoRunSetting, RoutedMessage } from '../src/generated/api';
import { changesOf, content, excerpt, formOf, hasAutomaticTurns, itemsOf, mailboxName, reasonName } from '../src/mail/mail';

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
