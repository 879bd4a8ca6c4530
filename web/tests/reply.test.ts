import { describe, expect, test } from 'vitest';
import { getMessagePhase } from '../src/chat/phase';
import { toolNames } from '../src/chat/message';
import type { Plan } from '../src/chat/parts';
import { fromEvent } from '../src/live/events';
import type { UiEvent } from '../src/live/frames';
import { runOf } from '../src/live/messages';
import { AGENT, after, chunk, receive, message, messagesOf, newMessage, NOW, onlyReply, repliesOf, reply, ROOM, signedIn } from './factories';

function event(kind: string, phase: string | undefined, data: Record<string, unknown>, text?: string): UiEvent {
  const where = { agent_id: AGENT, session_id: ROOM };
  const event = { id: 'e', seq: 1, rev: 1, ts_ms: NOW, kind, ...(phase && { phase }), ...(text && { text }), ...where, data };
  return event as UiEvent;
}

const toolUse = chunk('m', 'tool_use', '{"path":"a.ts"}', { metadata: { toolName: 'Read', toolId: 't1' } });
const toolResult = chunk('m', 'tool_result', '42 lines', { metadata: { toolName: 'Read', toolId: 't1' } });

describe('a streaming reply', () => {
  test('goes through its phases', () => {
    const thinking = receive(signedIn, chunk('m', 'thinking', 'What was asked?', { first: true }));
    expect(getMessagePhase(onlyReply(thinking))).toBe('thinking');
    const working = receive(thinking, toolUse);
    expect(getMessagePhase(onlyReply(working))).toBe('working');
    const streaming = receive(thinking, chunk('m', 'text', 'It is'));
    expect(getMessagePhase(onlyReply(streaming))).toBe('streaming');
    const done = receive(working, toolResult, newMessage(reply({ id: 'm', seq: 1 })));
    expect(getMessagePhase(onlyReply(done))).toBe('done');
  });

  test('joins text chunks in order and keeps thinking separate', () => {
    const streamed = onlyReply(
      receive(
        signedIn,
        chunk('m', 'thinking', 'Hm', { first: true }),
        chunk('m', 'thinking', 'm.'),
        chunk('m', 'text', 'Hello '),
        chunk('m', 'text', 'you.'),
      ),
    );
    expect(streamed.text).toBe('Hello you.');
    expect(streamed.content).toEqual([{ type: 'thinking', text: 'Hmm.' }]);
  });

  test('shows the name of the agent even if the first event lacks it', () => {
    const early = after(signedIn, ...fromEvent(event('activity', 'doing', { status: 'thinking' })));
    expect(onlyReply(receive(early, chunk('m', 'text', 'Hello', { first: true }))).senderName).toBe('Coder');
  });

  test('restarts when it is sent again from its first chunk', () => {
    const partial = receive(signedIn, chunk('m', 'text', 'Hello ', { first: true }), chunk('m', 'text', 'you'));
    const again = receive(partial, chunk('m', 'text', 'Hello you, my friend', { first: true }));
    expect(onlyReply(again).text).toBe('Hello you, my friend');
  });

  test('ignores late chunks after its complete message', () => {
    const full = reply({ id: 'm', seq: 3, content: 'Hello you.' });
    const done = receive(signedIn, chunk('m', 'text', 'Hello ', { first: true }), newMessage(full));
    const late = receive(done, chunk('m', 'text', 'Hello '), newMessage(full));
    expect(onlyReply(late)).toMatchObject({ text: 'Hello you.', state: 'stored', seq: 3 });
  });

  test('shows a tool with its input, progress and output', () => {
    const progress = fromEvent(event('tool_progress', undefined, { tool: 'Read', line: 'reading', stream: 'stderr' }));
    const state = receive(after(receive(signedIn, toolUse), ...progress), toolResult);
    expect(onlyReply(state).content).toEqual([
      {
        type: 'tool',
        id: 't1',
        name: 'Read',
        input: '{"path":"a.ts"}',
        output: '42 lines',
        isError: false,
        isRunning: false,
        progress: [{ line: 'reading', stream: 'stderr' }],
      },
    ]);
    expect(toolNames(onlyReply(state))).toEqual(['Read']);
  });

  test('keeps cards that arrived before its first chunk', () => {
    const plan = { summary: 'Tea', status: 'planned', items: [{ title: 'Boil', status: 'done' }] };
    const planned = after(signedIn, ...fromEvent(event('run', 'plan_update', { plan })));
    expect(onlyReply(planned).plan?.items[0]?.status).toBe('done');
    const streaming = receive(planned, chunk('m', 'text', 'Here it is.', { first: true }));
    expect(onlyReply(streaming)).toMatchObject({ id: 'm', text: 'Here it is.', plan: { summary: 'Tea' } });
    const done = receive(streaming, newMessage(reply({ id: 'm', seq: 2, content: 'Here it is.' })));
    expect(onlyReply(done)).toMatchObject({ id: 'm', plan: { summary: 'Tea' }, state: 'stored' });
  });

  test('is removed when the run ends without output', () => {
    const started = after(signedIn, ...fromEvent(event('activity', 'doing', { status: 'thinking' }, 'Thinking...')));
    expect(getMessagePhase(onlyReply(started))).toBe('thinking');
    const ended = after(started, ...fromEvent(event('turn_complete', undefined, {})));
    expect(messagesOf(ended)).toEqual([]);
  });

  test('stays when its run ends before it is stored, and the stored reply replaces it', () => {
    const plan = fromEvent(event('run', 'plan_update', { plan: { summary: 'Tea', status: 'planned', items: [] } }));
    const working = after(receive(signedIn, chunk('m', 'text', 'Hello', { first: true }), toolUse), ...plan);
    const ended = after(working, ...fromEvent(event('turn_complete', undefined, { duration_ms: 5000 })));
    expect(onlyReply(ended)).toMatchObject({ state: 'ended', text: 'Hello', durationMs: 5000, content: [{ isRunning: false }] });
    expect(getMessagePhase(onlyReply(ended))).toBe('done');
    const again = receive(ended, chunk('m', 'text', 'Hello you', { first: true }));
    expect(onlyReply(again)).toMatchObject({ state: 'streaming', text: 'Hello you', plan: { summary: 'Tea' } });
    const stored = receive(ended, newMessage(reply({ id: 'm', seq: 4, content: 'Hello.' })));
    expect(onlyReply(stored)).toMatchObject({ state: 'stored', text: 'Hello.', plan: { summary: 'Tea' } });
  });

  test('does not count transient statuses as activity', () => {
    const started = receive(signedIn, chunk('m', 'text', 'a', { first: true }));
    const update = after(started, ...fromEvent(event('activity', 'doing', { status: 'working' }, 'Running')));
    expect(getMessagePhase(onlyReply(update))).toBe('streaming');
    const busy = after(started, ...fromEvent(event('activity', 'doing', { status: 'calling_tool' }, 'Reading a.ts')));
    expect(getMessagePhase(onlyReply(busy))).toBe('working');
  });

  test('shows no card for JSON in its text', () => {
    const text = '{"type":"plan","plan":{"summary":"x","items":[]}}';
    const state = receive(signedIn, newMessage(reply({ id: 'm', seq: 1, content: text })));
    expect(onlyReply(state).plan).toBeUndefined();
    expect(onlyReply(state).text).toBe(text);
  });
});

describe('chat events', () => {
  test('set subagents, changes, questions, usage and fallbacks', () => {
    const started = receive(signedIn, chunk('m', 'text', 'a', { first: true }));
    const events = [
      event('run', 'subagent_spawned', { subagent_id: 'scout', task: 'Count' }),
      event('run', 'subagent_result', { subagent_id: 'scout', outcome: { type: 'none', status: 'complete', result: 'Seven' } }),
      event('run', 'change_report', { files: [{ path: 'a', summary: 'Added', diff: '+1' }], truncated_count: 2 }),
      event('run', 'context_usage', { estimated_tokens: 1150, message_count: 8, token_limit: 200000 }),
      event('model_fallback', undefined, { preferred_model: 'big', actual_model: 'small', reason: 'busy' }),
      event('ask_user', undefined, {
        question_id: 'q',
        questions: [{ question: 'Tea?', header: 'Drink', multi_select: true, options: [{ label: 'Yes' }] }],
      }),
    ];
    const streamed = onlyReply(after(started, ...events.flatMap(fromEvent)));
    expect(streamed.subagentTree).toEqual([{ id: 'scout', task: 'Count', status: 'complete', result: 'Seven' }]);
    expect(streamed.changeReport).toMatchObject({ truncatedCount: 2, files: [{ path: 'a' }] });
    expect(streamed).toMatchObject({ contextTokens: 1150, messageCount: 8, usage: { tokenLimit: 200000 } });
    expect(streamed.modelFallback?.actualModel).toBe('small');
    expect(streamed.askUser?.questions[0]?.options[0]?.label).toBe('Yes');
  });

  test('show how a subagent ended, and its result', () => {
    const spawned = fromEvent(event('run', 'subagent_spawned', { subagent_id: 'scout', task: 'Count', parent_id: null }));
    const ended = (outcome: Record<string, unknown>) =>
      onlyReply(after(signedIn, ...spawned, ...fromEvent(event('run', 'subagent_result', { subagent_id: 'scout', parent_id: null, outcome })))).subagentTree;
    const failed = ended({ type: 'none', status: 'failed', result: 'No tin' });
    expect(failed).toEqual([{ id: 'scout', task: 'Count', status: 'failed', result: 'No tin' }]);
    expect(ended({ type: 'none', status: 'cancelled', result: null })?.[0]?.status).toBe('cancelled');
    expect(ended({ type: 'none', status: 'complete', result: null })?.[0]?.status).toBe('complete');
  });

  test('attribute the activity of a subagent to that subagent, and not to the agent', () => {
    const spawned = after(signedIn, ...fromEvent(event('run', 'subagent_spawned', { subagent_id: 'scout', task: 'Count' })));
    const activity = (phase: string) =>
      fromEvent(event('activity', phase, { status: 'calling_tool', run_id: '1', parent_id: 'scout' }, 'Opening the tin'));
    const busy = onlyReply(after(spawned, ...activity('doing')));
    expect(busy.subagentTree?.[0]?.activity).toBe('Opening the tin');
    expect(getMessagePhase(busy)).toBe('streaming');
    const idle = onlyReply(after(spawned, ...activity('doing'), ...activity('done')));
    expect(idle.subagentTree?.[0]?.activity).toBeUndefined();
  });

  test('keep the cost of a run when a later report has none', () => {
    const reported = { actual_prompt_tokens: 1200, actual_completion_tokens: 340 };
    const withCost = after(signedIn, ...fromEvent(event('run', 'context_usage', { ...reported, cost_micros: 5200 })));
    expect(onlyReply(withCost).usage).toMatchObject({ inputTokens: 1200, outputTokens: 340, costMicros: 5200 });
    const later = after(withCost, ...fromEvent(event('run', 'context_usage', { ...reported, actual_completion_tokens: 400 })));
    expect(onlyReply(later).usage).toMatchObject({ outputTokens: 400, costMicros: 5200 });
  });

  test('end a question: answered, expired or withdrawn', () => {
    const questions = [{ question: 'Tea?', header: 'Drink', options: [{ label: 'Yes' }, { label: 'No' }] }];
    const withQuestion = after(signedIn, ...fromEvent(event('ask_user', undefined, { question_id: 'q', questions })));
    const ended = (data: Record<string, unknown>) =>
      onlyReply(after(withQuestion, ...fromEvent(event('ask_user', 'resolved', { question_id: 'q', ...data })))).askUser;
    const answers = [{ question_index: 0, selected: ['Yes'], custom_text: 'with milk' }];
    const answered = ended({ status: 'answered', answers, answered_by: 'u1', answered_by_name: 'Grace' });
    expect(answered?.end).toEqual({ answeredBy: 'Grace', chosen: ['Yes', 'with milk'], isExpired: false });
    expect(answered?.questions).toHaveLength(1);
    expect(ended({ status: 'expired' })?.end).toEqual({ chosen: [], isExpired: true });
    expect(ended({ status: 'withdrawn' })?.end).toEqual({ chosen: [], isExpired: false });
  });

  test('update a plan only in the reply of its run', () => {
    const planReply = reply({ id: 'm', seq: 1, metadata: { runId: 'run-1' } });
    const update = (status: string, run_id: string) =>
      fromEvent(event('run', 'plan_update', { run_id, plan: { summary: 'Tea', status, items: [] } }));
    const both = receive(signedIn, newMessage(planReply), chunk('n', 'text', 'Meanwhile', { first: true }));
    const [first, second] = repliesOf(after(both, ...update('rejected', 'run-1')));
    expect([first?.plan?.status, second?.plan]).toEqual(['rejected', undefined]);
    const finished = receive(signedIn, newMessage(planReply));
    expect(messagesOf(after(finished, ...update('approved', 'run-0')))).toHaveLength(1);
    const plan = { summary: 'Tea', status: 'planned', items: [] } satisfies Plan;
    const withPlan = after(finished, { type: 'PLANS_LOADED', roomId: ROOM, plans: [{ runId: 'run-1', plan }] });
    expect(onlyReply(withPlan).plan?.summary).toBe('Tea');
  });

  test('leave usage to loaded runs, which fill in missing values only', () => {
    const delivery = { runId: 'run-1', agentId: AGENT, agentName: 'Coder', roomId: ROOM, status: 'answered', routingMode: 'direct' };
    const times = { queuedAt: '2026-01-02T12:00:00Z', startedAt: '2026-01-02T12:00:01Z', endedAt: '2026-01-02T12:00:05Z' };
    const run = runOf({ ...delivery, conversationId: 'c', depth: 0, inputTokens: 30, outputTokens: 4, ...times });
    const loaded = { type: 'RUNS_LOADED' as const, roomId: ROOM, runs: [run, { runId: 'another' }] };
    const finished = receive(signedIn, newMessage(reply({ id: 'm', seq: 2, metadata: { runId: 'run-1' } })));
    const known = onlyReply(after(finished, loaded));
    expect(known).toMatchObject({ durationMs: 4000, usage: { inputTokens: 30, outputTokens: 4 } });
    const again = { ...loaded, runs: [{ runId: 'run-1', durationMs: 1 }] };
    expect(onlyReply(after(finished, loaded, again))).toEqual(known);
    // The live report has the tokens, and the loaded run adds the cost.
    const live = fromEvent(event('run', 'context_usage', { actual_prompt_tokens: 30, actual_completion_tokens: 4 }));
    const withCost = { ...loaded, runs: [{ runId: 'run-1', usage: { inputTokens: 1, costMicros: 5200 } }] };
    expect(onlyReply(after(finished, ...live, withCost)).usage).toMatchObject({ inputTokens: 30, outputTokens: 4, costMicros: 5200 });
  });

  test('set and clear the queue of an agent', () => {
    const queue = (items: object[]) => fromEvent(event('queue', undefined, { items }));
    const waiting = after(signedIn, ...queue([{ id: '1', preview: 'And then?' }]));
    expect(waiting.chats[ROOM]?.queue).toEqual([{ id: '1', agentId: AGENT, preview: 'And then?' }]);
    expect(after(waiting, ...queue([])).chats[ROOM]?.queue).toEqual([]);
  });

  test('without a room or an agent, or of an unknown kind, are ignored', () => {
    expect(fromEvent({ id: 'e', seq: 1, rev: 1, ts_ms: 1, kind: 'run', phase: 'sync' })).toEqual([]);
    expect(fromEvent(event('nonsense', undefined, {}))).toEqual([]);
  });
});

test('two agents stream separate replies', () => {
  const other = { ...chunk('n', 'text', 'Me too', { first: true }), agentId: 'writer' };
  const state = receive(signedIn, chunk('m', 'text', 'Hello', { first: true }), other, newMessage(message({ id: 'u', seq: 1 })));
  expect(messagesOf(state).map(({ id, text }) => [id, text])).toEqual([
    ['u', 'text of u'],
    ['m', 'Hello'],
    ['n', 'Me too'],
  ]);
});
