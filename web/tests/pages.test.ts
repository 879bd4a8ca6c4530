import { expect, test } from 'vitest';
import { costOf, gatewayCommand, secondsOf, tokensOf } from '../src/agents/labels';
import { isReply } from '../src/chat/message';
import type { Task, TurnDelivery } from '../src/generated/api';
import { toQueryString, parseFilter } from '../src/search/filter';
import { quantile, samplesIn, valueOf } from '../src/settings/metrics';
import { isOverdue, tasksOf } from '../src/tasks/columns';
import { after, AGENT, receive, message, messagesOf, newMessage, NOW, repliesOf, reply, ROOM, signedIn } from './factories';

function task(fields: Partial<Task> & { id: string }): Task {
  const at = new Date(NOW).toISOString();
  const created = { createdById: 'ada', createdByType: 'user', createdAt: at, updatedAt: at } as const;
  return { roomId: ROOM, title: fields.id, status: 'pending', ...created, ...fields };
}

test('the gateway command quotes its arguments for a shell', () => {
  expect(gatewayCommand('Coder', 'acp:codex', '')).toBe('parlor gateway --agent Coder=acp:codex');
  expect(gatewayCommand('echo', 'command', 'cat -n')).toBe('parlor gateway --agent echo=command -- cat -n');
  const hostile = gatewayCommand(`it's; $(rm -rf ~)`, 'claude', '');
  expect(hostile).toBe(`parlor gateway --agent 'it'\\''s; $(rm -rf ~)=claude'`);
});

test('tokens, cost and duration of runs are summed up', () => {
  const finished = { startedAt: '2026-01-02T12:00:00Z', endedAt: '2026-01-02T12:00:48Z' };
  const runs: Pick<TurnDelivery, 'inputTokens' | 'outputTokens' | 'costMicros' | 'startedAt' | 'endedAt'>[] = [
    { inputTokens: 50, outputTokens: 10, costMicros: 1200, ...finished },
    { inputTokens: 5, outputTokens: 0, startedAt: '2026-01-02T12:00:00Z' },
  ];
  expect([tokensOf(runs), costOf(runs), secondsOf(runs)]).toEqual([65, 1200, 48]);
});

test('metrics in the Prometheus text format are parsed', () => {
  const samples = samplesIn(
    [
      '# TYPE parlor_healthy gauge',
      'parlor_healthy 1',
      'parlor_sockets{endpoint="/ws/client"} 3',
      'a_seconds_bucket{route="/x",le="0.001"} 5',
      'a_seconds_bucket{route="/x",le="0.01"} 9',
      'a_seconds_bucket{route="/x",le="+Inf"} 10',
      'a_seconds_count{route="/x"} 10',
      'not a sample',
    ].join('\n'),
  );
  expect(valueOf(samples, 'parlor_healthy')).toBe(1);
  expect(samples.find(({ labels }) => labels['endpoint'] === '/ws/client')?.value).toBe(3);
  expect([0.5, 0.9, 0.99].map((part) => quantile(samples, 'a_seconds', part))).toEqual([0.001, 0.01, Infinity]);
  expect(quantile(samples, 'b_seconds', 0.5)).toBeUndefined();
});

test('a search filter survives the round trip through the query string', () => {
  const filter = { q: '"a b" -c', roomId: ROOM, senderType: 'agent', dateFrom: '2026-01-02' } as const;
  expect(parseFilter(`?${toQueryString(filter)}`)).toEqual(filter);
  expect(parseFilter('?senderType=everything')).toEqual({ q: '' });
  expect(toQueryString({ q: 'x', roomId: '' })).toBe('q=x');
});

test('a board sorts open tasks by due date and finished ones newest first', () => {
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

test('a task that an agent ends is shown on its last message, even if the board is not loaded', () => {
  const taskUpdate = (updated: Task) => ({ type: 'server:task_update', roomId: ROOM, task: updated, position: 'e-1' }) as const;
  const assigned = task({ id: 'a', assigneeId: AGENT, assigneeType: 'agent', status: 'in_progress' });
  const before = receive(signedIn, newMessage(reply({ id: 'm', seq: 1 })), newMessage(message({ id: 'u', seq: 2 })), taskUpdate(assigned));
  expect(repliesOf(before).some((item) => item.finalizedTask !== undefined)).toBe(false);
  const done = receive(before, taskUpdate({ ...assigned, status: 'completed', result: 'It is done' }));
  expect(messagesOf(done).map((item) => isReply(item) && item.finalizedTask?.result)).toEqual(['It is done', false]);
  const byHand = receive(before, taskUpdate({ ...assigned, assigneeId: 'ada', assigneeType: 'user', status: 'completed' }));
  expect(repliesOf(byHand).some((item) => item.finalizedTask !== undefined)).toBe(false);
});

test('task frames update loaded tasks, and a resync discards them', () => {
  const taskUpdate = (updated: Task, removed?: true) =>
    ({ type: 'server:task_update', roomId: ROOM, task: updated, ...(removed && { removed }), position: 'e-1' }) as const;
  const tasksNow = (state: typeof signedIn) => state.chats[ROOM]?.tasks;
  expect(tasksNow(receive(signedIn, taskUpdate(task({ id: 'a' }))))).toBeUndefined();
  const loaded = after(signedIn, { type: 'TASKS_LOADED', roomId: ROOM, tasks: [task({ id: 'a' }), task({ id: 'b' })] });
  const started = task({ id: 'a', status: 'in_progress', updatedAt: new Date(NOW + 1000).toISOString() });
  const updated = receive(loaded, taskUpdate(started), taskUpdate(task({ id: 'b' }), true));
  expect(tasksNow(updated)).toEqual({ a: started });
  // A response that is older than the change.
  const late = after(updated, { type: 'TASKS_LOADED', roomId: ROOM, tasks: [task({ id: 'a' })] });
  expect(tasksNow(late)).toEqual({ a: started });
  expect(tasksNow(after(late, { type: 'RESYNC' }))).toBeUndefined();
});
