import { expect, test } from 'vitest';
import { costOf, gatewayCommand, secondsOf, tokensOf } from '../src/agents/labels';
import type { Task, TurnDelivery } from '../src/generated/api';
import { toQueryString, parseFilter } from '../src/search/filter';
import { quantile, samplesIn, valueOf } from '../src/settings/metrics';
import { isOverdue, tasksOf } from '../src/tasks/columns';
import { after, AGENT, hears, message, messagesOf, newMessage, NOW, reply, ROOM, signedIn } from './made';

function task(fields: Partial<Task> & { id: string }): Task {
  const at = new Date(NOW).toISOString();
  const made = { createdById: 'ada', createdByType: 'user', createdAt: at, updatedAt: at } as const;
  return { roomId: ROOM, title: fields.id, status: 'pending', ...made, ...fields };
}

test('the command that is shown means to a shell what was typed', () => {
  expect(gatewayCommand('Coder', 'acp:codex', '')).toBe('parlor gateway --agent Coder=acp:codex');
  expect(gatewayCommand('echo', 'command', 'cat -n')).toBe('parlor gateway --agent echo=command -- cat -n');
  const hostile = gatewayCommand(`it's; $(rm -rf ~)`, 'claude', '');
  expect(hostile).toBe(`parlor gateway --agent 'it'\\''s; $(rm -rf ~)=claude'`);
});

test('turns of an agent are summed up by what is known of them', () => {
  const over = { startedAt: '2026-01-02T12:00:00Z', endedAt: '2026-01-02T12:00:48Z' };
  const runs: Pick<TurnDelivery, 'inputTokens' | 'outputTokens' | 'costMicros' | 'startedAt' | 'endedAt'>[] = [
    { inputTokens: 50, outputTokens: 10, costMicros: 1200, ...over },
    { inputTokens: 5, outputTokens: 0, startedAt: '2026-01-02T12:00:00Z' },
  ];
  expect([tokensOf(runs), costOf(runs), secondsOf(runs)]).toEqual([65, 1200, 48]);
});

test('numbers of the hub are read as they are written', () => {
  const samples = samplesIn(
    [
      '# TYPE parlor_healthy gauge',
      'parlor_healthy 1',
      'parlor_sockets{door="/ws/client"} 3',
      'a_seconds_bucket{route="/x",le="0.001"} 5',
      'a_seconds_bucket{route="/x",le="0.01"} 9',
      'a_seconds_bucket{route="/x",le="+Inf"} 10',
      'a_seconds_count{route="/x"} 10',
      'not a sample',
    ].join('\n'),
  );
  expect(valueOf(samples, 'parlor_healthy')).toBe(1);
  expect(samples.find(({ labels }) => labels['door'] === '/ws/client')?.value).toBe(3);
  expect([0.5, 0.9, 0.99].map((part) => quantile(samples, 'a_seconds', part))).toEqual([0.001, 0.01, Infinity]);
  expect(quantile(samples, 'b_seconds', 0.5)).toBeUndefined();
});

test('what is looked for stands in the address, and what is in an address is looked for', () => {
  const wanted = { q: '"a b" -c', roomId: ROOM, senderType: 'agent', dateFrom: '2026-01-02' } as const;
  expect(parseFilter(`?${toQueryString(wanted)}`)).toEqual(wanted);
  expect(parseFilter('?senderType=everything')).toEqual({ q: '' });
  expect(toQueryString({ q: 'x', roomId: '' })).toBe('q=x');
});

test('a board shows first what is due first, and of what is over the newest', () => {
  const tasks = [
    task({ id: 'later' }),
    task({ id: 'soon', dueDate: '2026-01-03T00:00:00Z' }),
    task({ id: 'old', status: 'completed', updatedAt: '2026-01-01T00:00:00Z' }),
    task({ id: 'new', status: 'failed', updatedAt: '2026-01-02T00:00:00Z' }),
  ];
  expect(tasksOf(tasks, 'todo').map(({ id }) => id)).toEqual(['soon', 'later']);
  expect(tasksOf(tasks, 'done').map(({ id }) => id)).toEqual(['new', 'old']);
  expect(isOverdue(task({ id: 'a', dueDate: '2026-01-01T00:00:00Z' }), NOW)).toBe(true);
  expect(isOverdue(task({ id: 'a', dueDate: '2026-01-01T00:00:00Z', status: 'completed' }), NOW)).toBe(false);
});

test('a task that an agent ends is told with what it said last, whether or not anybody looks at the board', () => {
  const told = (one: Task) => ({ type: 'server:task_update', roomId: ROOM, task: one, position: 'e-1' }) as const;
  const given = task({ id: 'a', assigneeId: AGENT, assigneeType: 'agent', status: 'in_progress' });
  const said = hears(signedIn, newMessage(reply({ id: 'm', seq: 1 })), newMessage(message({ id: 'u', seq: 2 })), told(given));
  expect(messagesOf(said).some((one) => one.finalizedTask !== undefined)).toBe(false);
  const done = hears(said, told({ ...given, status: 'completed', result: 'It is done' }));
  expect(messagesOf(done).map((one) => one.finalizedTask?.result)).toEqual(['It is done', undefined]);
  const byHand = hears(said, told({ ...given, assigneeId: 'ada', assigneeType: 'user', status: 'completed' }));
  expect(messagesOf(byHand).some((one) => one.finalizedTask !== undefined)).toBe(false);
});

test('tasks are what was read, changed by what was told, and read anew where that has holes', () => {
  const told = (one: Task, removed?: true) =>
    ({ type: 'server:task_update', roomId: ROOM, task: one, ...(removed && { removed }), position: 'e-1' }) as const;
  const tasksNow = (state: typeof signedIn) => state.chats[ROOM]?.tasks;
  expect(tasksNow(hears(signedIn, told(task({ id: 'a' }))))).toBeUndefined();
  const read = after(signedIn, { type: 'TASKS_LOADED', roomId: ROOM, tasks: [task({ id: 'a' }), task({ id: 'b' })] });
  const begun = task({ id: 'a', status: 'in_progress', updatedAt: new Date(NOW + 1000).toISOString() });
  const heard = hears(read, told(begun), told(task({ id: 'b' }), true));
  expect(tasksNow(heard)).toEqual({ a: begun });
  // An answer that was on its way before the change.
  const late = after(heard, { type: 'TASKS_LOADED', roomId: ROOM, tasks: [task({ id: 'a' })] });
  expect(tasksNow(late)).toEqual({ a: begun });
  expect(tasksNow(hears(late, { type: 'server:resync', roomId: ROOM, position: 'f-1' }))).toBeUndefined();
});
