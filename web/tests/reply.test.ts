import { describe, expect, test } from 'vitest';
import { getMessagePhase } from '../src/chat/phase';
import type { Plan } from '../src/chat/state';
import { fromEvent, type UiEvent } from '../src/live/events';
import { runOf } from '../src/live/messages';
import { AGENT, after, chunk, hears, message, messagesOf, newMessage, NOW, only, reply, ROOM, signedIn } from './made';

function event(kind: string, phase: string | undefined, data: Record<string, unknown>, text?: string): UiEvent {
  const where = { agent_id: AGENT, session_id: ROOM };
  return { id: 'e', seq: 1, rev: 1, ts_ms: NOW, kind, ...(phase && { phase }), ...(text && { text }), ...where, data };
}

const toolUse = chunk('m', 'tool_use', '{"path":"a.ts"}', { metadata: { toolName: 'Read', toolId: 't1' } });
const toolResult = chunk('m', 'tool_result', '42 lines', { metadata: { toolName: 'Read', toolId: 't1' } });

describe('a reply while it is given', () => {
  test('goes through its phases', () => {
    const thinking = hears(signedIn, chunk('m', 'thinking', 'What was asked?', { first: true }));
    expect(getMessagePhase(only(thinking))).toBe('thinking');
    const working = hears(thinking, toolUse);
    expect(getMessagePhase(only(working))).toBe('working');
    const streaming = hears(thinking, chunk('m', 'text', 'It is'));
    expect(getMessagePhase(only(streaming))).toBe('streaming');
    const done = hears(working, toolResult, newMessage(reply({ id: 'm', seq: 1 })));
    expect(getMessagePhase(only(done))).toBe('done');
  });

  test('has the pieces of its text in order, and thoughts apart', () => {
    const said = only(
      hears(
        signedIn,
        chunk('m', 'thinking', 'Hm', { first: true }),
        chunk('m', 'thinking', 'm.'),
        chunk('m', 'text', 'Hello '),
        chunk('m', 'text', 'you.'),
      ),
    );
    expect(said.text).toBe('Hello you.');
    expect(said.content).toEqual([{ type: 'thinking', text: 'Hmm.' }]);
  });

  test('is of its agent by name, also when an event without one came first', () => {
    const early = after(signedIn, ...fromEvent(event('activity', 'doing', { status: 'thinking' })));
    expect(only(hears(early, chunk('m', 'text', 'Hello', { first: true }))).senderName).toBe('Coder');
  });

  test('begins anew when it is told from its beginning', () => {
    const heard = hears(signedIn, chunk('m', 'text', 'Hello ', { first: true }), chunk('m', 'text', 'you'));
    const again = hears(heard, chunk('m', 'text', 'Hello you, my friend', { first: true }));
    expect(only(again).text).toBe('Hello you, my friend');
  });

  test('is complete once, whatever comes late', () => {
    const full = reply({ id: 'm', seq: 3, content: 'Hello you.' });
    const done = hears(signedIn, chunk('m', 'text', 'Hello ', { first: true }), newMessage(full));
    const late = hears(done, chunk('m', 'text', 'Hello '), newMessage(full));
    expect(only(late)).toMatchObject({ text: 'Hello you.', isGenerating: false, seq: 3 });
  });

  test('shows a tool with what went in, what it printed and what came out', () => {
    const progress = fromEvent(event('tool_progress', undefined, { tool: 'Read', line: 'reading', stream: 'stderr' }));
    const state = hears(after(hears(signedIn, toolUse), ...progress), toolResult);
    expect(only(state).content).toEqual([
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
    expect(only(state).toolCount).toBe(1);
  });

  test('takes over the cards that came before its first piece, and keeps them to the end', () => {
    const plan = { summary: 'Tea', status: 'planned', items: [{ title: 'Boil', status: 'done' }] };
    const planned = after(signedIn, ...fromEvent(event('run', 'plan_update', { plan })));
    expect(only(planned).plan?.items[0]?.status).toBe('done');
    const said = hears(planned, chunk('m', 'text', 'Here it is.', { first: true }));
    expect(only(said)).toMatchObject({ id: 'm', text: 'Here it is.', plan: { summary: 'Tea' } });
    const done = hears(said, newMessage(reply({ id: 'm', seq: 2, content: 'Here it is.' })));
    expect(only(done)).toMatchObject({ id: 'm', plan: { summary: 'Tea' }, isGenerating: false });
  });

  test('ends without a message when nothing was said', () => {
    const begun = after(signedIn, ...fromEvent(event('activity', 'doing', { status: 'thinking' }, 'Thinking...')));
    expect(getMessagePhase(only(begun))).toBe('thinking');
    const ended = after(begun, ...fromEvent(event('turn_complete', undefined, {})));
    expect(messagesOf(ended)).toEqual([]);
  });

  test('counts transient statuses as no activity', () => {
    const begun = hears(signedIn, chunk('m', 'text', 'a', { first: true }));
    const told = after(begun, ...fromEvent(event('activity', 'doing', { status: 'working' }, 'Running')));
    expect(getMessagePhase(only(told))).toBe('streaming');
    const busy = after(begun, ...fromEvent(event('activity', 'doing', { status: 'calling_tool' }, 'Reading a.ts')));
    expect(getMessagePhase(only(busy))).toBe('working');
  });

  test('does not become a card when its text is JSON', () => {
    const text = '{"type":"plan","plan":{"summary":"x","items":[]}}';
    const state = hears(signedIn, newMessage(reply({ id: 'm', seq: 1, content: text })));
    expect(only(state).plan).toBeUndefined();
    expect(only(state).text).toBe(text);
  });
});

describe('chat events', () => {
  test('tell of helpers, changes, questions, usage and fallbacks', () => {
    const begun = hears(signedIn, chunk('m', 'text', 'a', { first: true }));
    const events = [
      event('run', 'subagent_spawned', { subagent_id: 'scout', task: 'Count' }),
      event('run', 'subagent_result', { subagent_id: 'scout', outcome: { type: 'none' }, result: 'Seven' }),
      event('run', 'change_report', { files: [{ path: 'a', summary: 'Added', diff: '+1' }], truncated_count: 2 }),
      event('run', 'context_usage', { estimated_tokens: 1150, message_count: 8, token_limit: 200000 }),
      event('model_fallback', undefined, { preferred_model: 'big', actual_model: 'small', reason: 'busy' }),
      event('ask_user', undefined, {
        question_id: 'q',
        questions: [{ question: 'Tea?', header: 'Drink', multi_select: true, options: [{ label: 'Yes' }] }],
      }),
    ];
    const said = only(after(begun, ...events.flatMap(fromEvent)));
    expect(said.subagentTree).toEqual([{ id: 'scout', task: 'Count', status: 'complete', result: 'Seven' }]);
    expect(said.changeReport).toMatchObject({ truncatedCount: 2, files: [{ path: 'a' }] });
    expect(said).toMatchObject({ contextTokens: 1150, messageCount: 8, usage: { tokenLimit: 200000 } });
    expect(said.modelFallback?.actualModel).toBe('small');
    expect(said.askUser?.questions[0]?.options[0]?.label).toBe('Yes');
  });

  test('end a question: answered, too late, or not needed any more', () => {
    const questions = [{ question: 'Tea?', header: 'Drink', options: [{ label: 'Yes' }, { label: 'No' }] }];
    const asked = after(signedIn, ...fromEvent(event('ask_user', undefined, { question_id: 'q', questions })));
    const ended = (data: Record<string, unknown>) =>
      only(after(asked, ...fromEvent(event('ask_user', 'resolved', { question_id: 'q', ...data })))).askUser;
    const answers = [{ question_index: 0, selected: ['Yes'], custom_text: 'with milk' }];
    const answered = ended({ status: 'answered', answers, answered_by: 'u1', answered_by_name: 'Grace' });
    expect(answered?.end).toEqual({ answeredBy: 'Grace', chosen: ['Yes', 'with milk'], isExpired: false });
    expect(answered?.questions).toHaveLength(1);
    expect(ended({ status: 'expired' })?.end).toEqual({ chosen: [], isExpired: true });
    expect(ended({ status: 'withdrawn' })?.end).toEqual({ chosen: [], isExpired: false });
  });

  test('decide about a plan in the reply that made it, and nowhere else', () => {
    const made = reply({ id: 'm', seq: 1, metadata: { runId: 'run-1' } });
    const told = (status: string, run_id: string) =>
      fromEvent(event('run', 'plan_update', { run_id, plan: { summary: 'Tea', status, items: [] } }));
    const said = hears(signedIn, newMessage(made), chunk('n', 'text', 'Meanwhile', { first: true }));
    const [first, second] = messagesOf(after(said, ...told('rejected', 'run-1')));
    expect([first?.plan?.status, second?.plan]).toEqual(['rejected', undefined]);
    const quiet = hears(signedIn, newMessage(made));
    expect(messagesOf(after(quiet, ...told('approved', 'run-0')))).toHaveLength(1);
    const plan = { summary: 'Tea', status: 'planned', items: [] } satisfies Plan;
    const kept = after(quiet, { type: 'PLANS_LOADED', roomId: ROOM, plans: [{ runId: 'run-1', plan }] });
    expect(only(kept).plan?.summary).toBe('Tea');
  });

  test('tell afterwards what a turn took, and not less than was told live', () => {
    const turn = { runId: 'run-1', agentId: AGENT, agentName: 'Coder', roomId: ROOM, status: 'answered', routingMode: 'direct' };
    const times = { queuedAt: '2026-01-02T12:00:00Z', startedAt: '2026-01-02T12:00:01Z', endedAt: '2026-01-02T12:00:05Z' };
    const run = runOf({ ...turn, conversationId: 'c', depth: 0, inputTokens: 30, outputTokens: 4, ...times });
    const loaded = { type: 'RUNS_LOADED' as const, roomId: ROOM, runs: [run, { runId: 'another' }] };
    const quiet = hears(signedIn, newMessage(reply({ id: 'm', seq: 2, metadata: { runId: 'run-1' } })));
    const known = only(after(quiet, loaded));
    expect(known).toMatchObject({ durationMs: 4000, usage: { inputTokens: 30, outputTokens: 4 } });
    const again = { ...loaded, runs: [{ runId: 'run-1', durationMs: 1 }] };
    expect(only(after(quiet, loaded, again))).toEqual(known);
  });

  test('fill and empty the queue of an agent', () => {
    const queue = (items: object[]) => fromEvent(event('queue', undefined, { items }));
    const waiting = after(signedIn, ...queue([{ id: '1', preview: 'And then?' }]));
    expect(waiting.chats[ROOM]?.queue).toEqual([{ id: '1', agentId: AGENT, preview: 'And then?' }]);
    expect(after(waiting, ...queue([])).chats[ROOM]?.queue).toEqual([]);
  });

  test('of no room, of no agent, or of an unknown kind change nothing', () => {
    expect(fromEvent({ id: 'e', seq: 1, rev: 1, ts_ms: 1, kind: 'run', phase: 'sync' })).toEqual([]);
    expect(fromEvent(event('nonsense', undefined, {}))).toEqual([]);
  });
});

test('of two agents each has its own reply', () => {
  const other = { ...chunk('n', 'text', 'Me too', { first: true }), agentId: 'writer' };
  const state = hears(signedIn, chunk('m', 'text', 'Hello', { first: true }), other, newMessage(message({ id: 'u', seq: 1 })));
  expect(messagesOf(state).map(({ id, text }) => [id, text])).toEqual([
    ['u', 'text of u'],
    ['m', 'Hello'],
    ['n', 'Me too'],
  ]);
});
