import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { queries } from '../src/api/queries';
import { dispatch, dispatchSoon, useChat } from '../src/chat/store';
import type { Message } from '../src/generated/api';
import type { ServerFrame, UiEvent } from '../src/live/frames';
import { Loader } from '../src/live/loader';
import { translate } from '../src/live/translate';
import { message, messagesOf, reply, room, ROOM } from './factories';

/** Answers of the hub by path without query. A path without an answer fails. */
let answers: Record<string, unknown>;
let requests: string[];

function answer(path: string): Promise<unknown> {
  requests.push(path);
  const key = path.split('?')[0] ?? '';
  return key in answers ? Promise.resolve(answers[key]) : Promise.reject(new Error(`no answer to ${path}`));
}

vi.mock('../src/api/http', () => ({
  apiRequest: (_: string, path: string) => answer(path),
  apiResult: (_: string, path: string) => answer(path),
}));

let loader: Loader;

beforeEach(() => {
  vi.useFakeTimers();
  answers = {};
  requests = [];
  queries.clear();
  dispatch({ type: 'SIGNED_OUT' });
  dispatch({ type: 'SIGNED_IN', id: 'ada', names: ['ada'] });
  loader = new Loader();
});

afterEach(() => {
  loader.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function hasRooms(...ids: string[]): void {
  const { members: _, unread: __, mentions: ___, ...entry } = room();
  answers['/api/rooms'] = ids.map((id) => ({ ...entry, id }));
  answers['/api/messages/recent'] = {};
}

function hasRoom(roomId: string, agents: string[] = []): void {
  const members = agents.map((id) => ({ memberId: id, memberType: 'agent', displayName: id, roleDescription: null, lastReadAt: null }));
  answers[`/api/rooms/${roomId}`] = { ...room({ id: roomId }), systemPrompt: null, routerId: null, members };
  answers[`/api/rooms/${roomId}/pins`] = [{ messageId: 'pinned' }];
  for (const id of agents) answers[`/api/agents/${id}`] = { name: id, status: 'online', model: null };
}

function hasHistory(items: Message[], nextCursor?: string): void {
  answers[`/api/messages/rooms/${ROOM}`] = { items, hasMore: nextCursor !== undefined, nextCursor };
  answers['/api/plan'] = [];
}

const FOLLOWING: ServerFrame = { type: 'server:following', position: 'e-1' };

function chat() {
  return useChat.getState().chats[ROOM];
}

describe('rooms', () => {
  test('are loaded with two requests, however many they are', async () => {
    hasRooms(...Array.from({ length: 200 }, (_, index) => `room-${index}`));
    answers['/api/messages/recent'] = { 'room-7': { content: '', senderName: '', createdAt: '2027-01-01T00:00:00Z', unread: 3, mentions: 1 } };
    loader.resume();
    await loader.reload();
    loader.onFrame(FOLLOWING);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(requests).toEqual(['/api/rooms', '/api/messages/recent']);
    expect(Object.keys(useChat.getState().rooms)).toHaveLength(200);
    expect(useChat.getState().rooms['room-7']).toMatchObject({ unread: 3, mentions: 1 });
  });

  test('to which the user was added are loaded', async () => {
    hasRooms(ROOM);
    loader.onFrame({ type: 'server:room_update', room: room(), position: 'e-1' });
    await vi.advanceTimersByTimeAsync(0);
    expect(Object.keys(useChat.getState().rooms)).toEqual([ROOM]);
    requests = [];
    loader.onFrame({ type: 'server:room_update', room: room(), position: 'e-2' });
    expect(requests).toEqual([]);
  });

  test('are loaded with their members, pins and agents', async () => {
    hasRoom(ROOM, ['coder']);
    await loader.loadRoom(ROOM);
    const state = useChat.getState();
    expect(state.rooms[ROOM]?.members).toMatchObject([{ memberId: 'coder' }]);
    expect(chat()?.pinned).toEqual({ pinned: true });
    expect(state.agents['coder']).toMatchObject({ status: 'online', queueDepth: 0 });
  });

  test('that cannot be loaded leave the state as it is', async () => {
    const before = useChat.getState();
    await loader.loadRoom('deleted');
    expect(useChat.getState()).toBe(before);
  });
});

describe('the history', () => {
  beforeEach(() => {
    hasRoom(ROOM);
    dispatch({ type: 'ROOM_OPENED', roomId: ROOM });
  });

  test('is loaded when the connection follows all rooms, and only once', async () => {
    hasHistory([message({ id: 'a', seq: 1 })]);
    loader.open(ROOM);
    await vi.advanceTimersByTimeAsync(0);
    expect(messagesOf(useChat.getState())).toEqual([]);
    for (let connection = 0; connection < 2; connection += 1) {
      loader.resume();
      loader.onFrame(FOLLOWING);
      await vi.advanceTimersByTimeAsync(0);
    }
    expect(messagesOf(useChat.getState())).toMatchObject([{ id: 'a' }]);
    expect(requests.filter((path) => path.startsWith('/api/messages/'))).toHaveLength(1);
  });

  test('is loaded again when the user is removed from the open room and added again', async () => {
    hasRooms(ROOM);
    hasHistory([message({ id: 'a', seq: 1 })]);
    loader.onFrame(FOLLOWING);
    await loader.refreshRooms();
    const frames: ServerFrame[] = [
      { type: 'server:room_removed', roomId: ROOM },
      { type: 'server:room_update', room: room(), position: 'e-3' },
    ];
    vi.stubGlobal('document', { hidden: true });
    for (const frame of frames) {
      dispatchSoon(translate(frame, 0));
      loader.onFrame(frame);
    }
    await vi.advanceTimersByTimeAsync(0);
    expect(messagesOf(useChat.getState())).toMatchObject([{ id: 'a' }]);
    expect(chat()?.history).toBe('ready');
  });

  test('of a room that is opened later is loaded at once', async () => {
    hasHistory([message({ id: 'a', seq: 1 })]);
    dispatch({ type: 'ROOM_OPENED', roomId: undefined });
    loader.onFrame(FOLLOWING);
    expect(requests).toEqual([]);
    loader.open(ROOM);
    await vi.advanceTimersByTimeAsync(0);
    expect(messagesOf(useChat.getState())).toMatchObject([{ id: 'a' }]);
  });

  test('is requested again three seconds after a failure, while its room is open', async () => {
    await loader.history.load(ROOM);
    expect(chat()?.history).toBe('unread');
    hasHistory([message({ id: 'a', seq: 1 })]);
    await vi.advanceTimersByTimeAsync(3000);
    expect(chat()?.history).toBe('ready');
  });

  test('is extended with older pages until a message is found', async () => {
    hasHistory([message({ id: 'c', seq: 3 })], 'before-c');
    await loader.history.load(ROOM);
    hasHistory([message({ id: 'b', seq: 2 })], 'before-b');
    await loader.history.loadOlder(ROOM);
    expect(requests.at(-1)).toBe(`/api/messages/rooms/${ROOM}?limit=50&cursor=before-c`);
    hasHistory([message({ id: 'a', seq: 1 })]);
    expect(await loader.history.find(ROOM, 'a')).toBe(true);
    expect(await loader.history.find(ROOM, 'elsewhere')).toBe(false);
    expect(messagesOf(useChat.getState()).map(({ id }) => id)).toEqual(['a', 'b', 'c']);
  });

  test('has the plans and the usage of its runs', async () => {
    hasHistory([reply({ id: 'm', seq: 1, metadata: { runId: 'run-1' } })]);
    answers['/api/plan'] = [{ run_id: 'run-1', plan: { summary: 'Tea', status: 'completed', items: [] } }];
    answers['/api/agents/coder/runs'] = [{ runId: 'run-1', inputTokens: 30, outputTokens: 4, costMicros: 5200 }];
    await loader.history.load(ROOM);
    expect(messagesOf(useChat.getState())).toMatchObject([{ plan: { summary: 'Tea' }, usage: { costMicros: 5200 } }]);
  });
});

describe('a run/sync event', () => {
  const sync = (named: { session_id?: string; agent_id?: string }): ServerFrame => ({
    type: 'server:event',
    event: { id: 'run-sync-1', seq: 1, rev: 1, ts_ms: 1, kind: 'run', phase: 'sync', text: 'State updated', ...named },
  });

  beforeEach(async () => {
    hasRooms(ROOM);
    hasRoom(ROOM, ['coder']);
    dispatch({ type: 'ROOM_OPENED', roomId: ROOM });
    await loader.loadRoom(ROOM);
    requests = [];
  });

  async function receive(...frames: ServerFrame[]): Promise<void> {
    for (const frame of frames) loader.onFrame(frame);
    await vi.advanceTimersByTimeAsync(1000);
  }

  /** Whether the cached query has to be requested again. */
  function isStale(...queryKey: string[]): boolean {
    return queries.getQueryState(queryKey)?.isInvalidated ?? false;
  }

  test('that names the open room reloads the room list and the room', async () => {
    hasRoom(ROOM, ['coder', 'writer']);
    queries.setQueryData(['missions', ROOM], []);
    queries.setQueryData(['missions', 'other'], []);
    await receive(sync({ session_id: ROOM }));
    expect(requests.toSorted()).toEqual([
      '/api/agents/writer',
      '/api/messages/recent',
      '/api/rooms',
      `/api/rooms/${ROOM}`,
      `/api/rooms/${ROOM}/pins`,
    ]);
    expect(useChat.getState().rooms[ROOM]?.members).toHaveLength(2);
    expect([isStale('missions', ROOM), isStale('missions', 'other')]).toEqual([true, false]);
  });

  test('that names another room reloads the room list', async () => {
    hasRooms(ROOM, 'attic');
    await receive(sync({ session_id: 'attic' }));
    expect(requests.toSorted()).toEqual(['/api/messages/recent', '/api/rooms']);
    expect(Object.keys(useChat.getState().rooms)).toContain('attic');
  });

  test('that names an agent reloads the agent', async () => {
    answers['/api/agents/coder'] = { name: 'Renamed', status: 'busy', model: null };
    queries.setQueryData(['agents'], []);
    queries.setQueryData(['hub-settings'], {});
    await receive(sync({ agent_id: 'coder' }), sync({ agent_id: 'never seen' }));
    expect(requests).toEqual(['/api/agents/coder']);
    expect(useChat.getState().agents['coder']).toMatchObject({ name: 'Renamed', status: 'busy' });
    expect([isStale('agents'), isStale('hub-settings')]).toEqual([true, false]);
  });

  test('that names nothing reloads rooms, agents and settings', async () => {
    queries.setQueryData(['agents'], []);
    queries.setQueryData(['hub-settings'], {});
    await receive(sync({}));
    expect(requests).toEqual(expect.arrayContaining(['/api/rooms', `/api/rooms/${ROOM}`, '/api/agents/coder']));
    expect([isStale('agents'), isStale('hub-settings')]).toEqual([true, true]);
  });

  test('that is one of many causes one reload', async () => {
    await receive(...Array.from({ length: 20 }, () => sync({ session_id: ROOM })));
    expect(requests.filter((path) => path === '/api/rooms')).toHaveLength(1);
  });

  test('is dropped when the loader is stopped', async () => {
    loader.onFrame(sync({}));
    loader.stop();
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toEqual([]);
  });
});

test('a run/resync event loads the open room and the room list again, and replaces the messages', async () => {
  hasRooms(ROOM);
  hasRoom(ROOM);
  hasHistory([message({ id: 'a', seq: 1 }), message({ id: 'deleted', seq: 2 })]);
  dispatch({ type: 'ROOM_OPENED', roomId: ROOM });
  await loader.history.load(ROOM);
  hasHistory([message({ id: 'a', seq: 1 }), message({ id: 'b', seq: 3 })]);
  const data = { reason: 'too_old', lagged_count: 3 };
  const event: UiEvent = { id: 'run-resync-1', seq: 1, rev: 1, ts_ms: 1, kind: 'run', phase: 'resync', data };
  for (const frame of [{ type: 'server:event', event } as const, FOLLOWING]) {
    translate(frame, 0).forEach(dispatch);
    loader.onFrame(frame);
  }
  await vi.advanceTimersByTimeAsync(1000);
  expect(messagesOf(useChat.getState()).map(({ id }) => id)).toEqual(['a', 'b']);
  expect(requests).toContain('/api/rooms');
  expect(useChat.getState().position).toBe('e-1');
});

test('the tasks of a room are loaded with its members', async () => {
  hasRoom(ROOM, ['coder']);
  answers[`/api/tasks/rooms/${ROOM}`] = [{ id: 't', title: 'Soup' }];
  await loader.loadTasks(ROOM);
  await vi.advanceTimersByTimeAsync(0);
  expect(chat()?.tasks).toMatchObject({ t: { title: 'Soup' } });
  expect(useChat.getState().rooms[ROOM]?.members).toHaveLength(1);
});
