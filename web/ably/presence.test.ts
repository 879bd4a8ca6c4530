/** Presence: members, their changes, synchronisation, and members of lost connections. */
import { describe, expect, test } from 'vitest';
import {
  FORMATS, channelName, clientIds, connected, errorOf, keyWith, reached, rest, watching, wire, nextEvent, type Ably,
} from './clients';

describe.each(FORMATS)('in %s', (format) => {
  test('a member enters, updates and leaves', async () => {
    const [ann, watcher] = await Promise.all([connected({ format, clientId: 'ann' }), connected({ format })]);
    const name = channelName();
    const changes = await watching(watcher.channels.get(name));
    const { presence } = ann.channels.get(name);
    await presence.enter({ n: 1 });
    await presence.update('second');
    await presence.leave('bye');
    const seen = await changes.take(3);
    expect(seen.map(({ action, clientId, data }) => [action, clientId, data as unknown])).toEqual([
      ['enter', 'ann', { n: 1 }],
      ['update', 'ann', 'second'],
      ['leave', 'ann', 'bye'],
    ]);
    for (const change of seen) {
      expect(change.connectionId).toBe(ann.connection.id);
      expect(change.id).toMatch(new RegExp(`^${ann.connection.id}:\\d+:0$`));
      expect(change.timestamp).toBeGreaterThan(0);
    }
    expect(await watcher.channels.get(name).presence.get()).toEqual([]);
  });

  test('the member receives its own changes', async () => {
    const ann = await connected({ format, clientId: 'ann' });
    const channel = ann.channels.get(channelName());
    const changes = await watching(channel);
    await channel.presence.enter('here');
    expect(await changes.next()).toMatchObject({ action: 'enter', clientId: 'ann', data: 'here' });
    expect(clientIds(await channel.presence.get())).toEqual(['ann']);
  });

  test('a second enter is an update, and a leave without data has the last data', async () => {
    const [ann, watcher] = await Promise.all([connected({ format, clientId: 'ann' }), connected({ format })]);
    const name = channelName();
    const changes = await watching(watcher.channels.get(name));
    const { presence } = ann.channels.get(name);
    await presence.enter('first');
    await presence.enter('second');
    await presence.leave();
    expect((await changes.take(3)).map(({ action, data }) => [action, data as unknown])).toEqual([
      ['enter', 'first'],
      ['update', 'second'],
      ['leave', 'second'],
    ]);
  });

  test('an update without an enter enters', async () => {
    const [ann, watcher] = await Promise.all([connected({ format, clientId: 'ann' }), connected({ format })]);
    const name = channelName();
    const changes = await watching(watcher.channels.get(name));
    await ann.channels.get(name).presence.update('data');
    expect(await changes.next()).toMatchObject({ clientId: 'ann', data: 'data' });
    expect(clientIds(await watcher.channels.get(name).presence.get())).toEqual(['ann']);
  });

  test('a later subscriber synchronises all members', async () => {
    const many = await connected({ format });
    const name = channelName();
    const { presence } = many.channels.get(name);
    const ids = Array.from({ length: 250 }, (_, at) => `client-${String(at).padStart(3, '0')}`);
    await Promise.all(ids.map((id) => presence.enterClient(id, { id })));
    const late = await connected({ format });
    const channel = late.channels.get(name);
    const members = await channel.presence.get();
    expect(clientIds(members)).toEqual(ids);
    expect(channel.presence.syncComplete).toBe(true);
    expect(members.every((member) => member.action === 'present')).toBe(true);
    for (const member of members) expect(member.data).toEqual({ id: member.clientId });
  });

  test('members are presented to a subscriber that attaches later', async () => {
    const [ann, late] = await Promise.all([connected({ format, clientId: 'ann' }), connected({ format })]);
    const name = channelName();
    await ann.channels.get(name).presence.enter('data');
    const changes = await watching(late.channels.get(name));
    expect(await changes.next()).toMatchObject({ action: 'present', clientId: 'ann', data: 'data' });
  });

  test('one connection has many members, and one client has many connections', async () => {
    const [one, two] = await Promise.all([connected({ format }), connected({ format })]);
    const name = channelName();
    await one.channels.get(name).presence.enterClient('ann', 'from one');
    await one.channels.get(name).presence.enterClient('bob', 'from one');
    await two.channels.get(name).presence.enterClient('ann', 'from two');
    const { presence } = one.channels.get(name);
    await presence.subscribe(() => undefined);
    await expect.poll(async () => clientIds(await presence.get())).toEqual(['ann', 'ann', 'bob']);
    expect(clientIds(await presence.get({ clientId: 'ann' }))).toEqual(['ann', 'ann']);
    expect(clientIds(await presence.get({ connectionId: one.connection.id }))).toEqual(['ann', 'bob']);
    await one.channels.get(name).presence.leaveClient('ann');
    await expect.poll(async () => clientIds(await presence.get())).toEqual(['ann', 'bob']);
    await one.channels.get(name).presence.updateClient('bob', 'changed');
    await expect.poll(async () => (await presence.get({ clientId: 'bob' }))[0]?.data as unknown).toBe('changed');
  });

  test('subscriptions select changes by their action', async () => {
    const [ann, watcher] = await Promise.all([connected({ format, clientId: 'ann' }), connected({ format })]);
    const name = channelName();
    const channel = watcher.channels.get(name);
    const leaves: string[] = [];
    await channel.presence.subscribe('leave', (change) => leaves.push(change.clientId));
    const changes = await watching(channel);
    await ann.channels.get(name).presence.enter();
    await ann.channels.get(name).presence.leave();
    await changes.take(2);
    expect(leaves).toEqual(['ann']);
  });

  test('a client without an identity cannot enter', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    expect((await errorOf(channel.presence.enter())).code).toBe(40012);
    expect((await errorOf(channel.presence.leave())).code).toBe(40012);
  });

  test('a client enters only with its own identity', async () => {
    const client = await connected({ format, clientId: 'ann' });
    const channel = client.channels.get(channelName());
    expect((await errorOf(channel.presence.enterClient('bob'))).code).toBe(40012);
    await channel.presence.enterClient('ann');
    expect(client.connection.state).toBe('connected');
  });

  test('presence needs the capability for it', async () => {
    const [name, other] = [channelName(), channelName()];
    const client = await connected({ format, clientId: 'ann', key: await keyWith({ [name]: ['subscribe', 'publish'] }) });
    expect((await errorOf(client.channels.get(name).presence.enter())).code).toBe(40160);
    // The client library attaches first, without a handler for a refusal of that.
    await errorOf(client.channels.get(other).attach());
    expect((await errorOf(client.channels.get(other).presence.enter())).code).toBeGreaterThan(40000);
  });

  test('a detach leaves', async () => {
    const [ann, watcher] = await Promise.all([connected({ format, clientId: 'ann' }), connected({ format })]);
    const name = channelName();
    const changes = await watching(watcher.channels.get(name));
    await ann.channels.get(name).presence.enter('data');
    await ann.channels.get(name).detach();
    expect((await changes.take(2)).map((change) => change.action)).toEqual(['enter', 'leave']);
  });

  test('a close leaves at once', async () => {
    const [ann, watcher] = await Promise.all([connected({ format, clientId: 'ann' }), connected({ format })]);
    const name = channelName();
    const changes = await watching(watcher.channels.get(name));
    await ann.channels.get(name).presence.enter('data');
    ann.close();
    await reached(ann, 'closed');
    const [, leave] = await changes.take(2);
    expect(leave).toMatchObject({ action: 'leave', clientId: 'ann', data: 'data' });
  });

  test('a member stays when its socket is lost and resumed', async () => {
    const proxy = await wire();
    const [ann, watcher] = await Promise.all([connected({ format, clientId: 'ann', port: proxy.port }), connected({ format })]);
    const name = channelName();
    const channel = watcher.channels.get(name);
    const changes = await watching(channel);
    await ann.channels.get(name).presence.enter('data');
    await changes.next();
    const again = nextEvent(ann, 'connected');
    proxy.cut();
    await again;
    // The client enters again by itself; then it is still present once, and no other client saw it leave.
    await ann.channels.get(name).presence.update('after');
    const later = await changes.find((change) => change.data === 'after');
    expect(later.action).toBe('update');
    expect(changes.all.filter((change) => change.action === 'leave')).toEqual([]);
    expect(clientIds(await channel.presence.get())).toEqual(['ann']);
  });

  test('REST lists the members and their history', async () => {
    const ann = await connected({ format, clientId: 'ann' });
    const name = channelName();
    const { presence } = ann.channels.get(name);
    await presence.enter({ n: 1 });
    await presence.update(Buffer.from([1, 2, 250]));
    const channel = rest({ format }).channels.get(name);
    const members = await channel.presence.get();
    expect(members.items).toMatchObject([{ action: 'present', clientId: 'ann', connectionId: ann.connection.id }]);
    expect(members.items[0]?.data).toEqual(Buffer.from([1, 2, 250]));
    expect((await channel.presence.get({ clientId: 'bob' })).items).toEqual([]);
    expect((await channel.presence.get({ clientId: 'ann' })).items.length).toBe(1);
    expect((await channel.presence.get({ connectionId: 'unknown' })).items).toEqual([]);
    await presence.leave();
    expect((await channel.presence.get()).items).toEqual([]);
    const history = await channel.presence.history({ direction: 'forwards' });
    expect(history.items.map((change) => change.action)).toEqual(['enter', 'update', 'leave']);
    expect(history.items[0]?.data).toEqual({ n: 1 });
    const back = await presence.history({ limit: 2 });
    expect(back.items.map((change) => change.action)).toEqual(['leave', 'update']);
    const rest2 = await back.next();
    expect(rest2?.items.map((change) => change.action)).toEqual(['enter']);
  });

  test('REST pages the members', async () => {
    const client = await connected({ format });
    const name = channelName();
    const ids = Array.from({ length: 5 }, (_, at) => `client-${at}`);
    await Promise.all(ids.map((id) => client.channels.get(name).presence.enterClient(id)));
    const found: Ably.PresenceMessage[] = [];
    let page: Ably.PaginatedResult<Ably.PresenceMessage> | null = await rest({ format }).channels.get(name).presence.get({ limit: 2 });
    while (page !== null) {
      expect(page.items.length).toBeLessThanOrEqual(2);
      found.push(...page.items);
      page = await page.next();
    }
    expect(clientIds(found)).toEqual(ids);
  });

  test('a client without the mode for presence receives none', async () => {
    const name = channelName();
    const [ann, watcher] = await Promise.all([connected({ format, clientId: 'ann' }), connected({ format })]);
    const channel = watcher.channels.get(name, { modes: ['SUBSCRIBE', 'PUBLISH'] });
    await channel.attach();
    const seen: string[] = [];
    channel.presence.subscribe((change) => seen.push(change.clientId)).catch(() => undefined);
    await ann.channels.get(name).presence.enter();
    await watcher.connection.ping();
    expect(seen).toEqual([]);
  });
});

test('the member of a lost connection leaves after the grace period', async () => {
  const proxy = await wire();
  const [ann, watcher] = await Promise.all([connected({ clientId: 'ann', port: proxy.port }), connected()]);
  const name = channelName();
  const channel = watcher.channels.get(name);
  const changes = await watching(channel);
  await ann.channels.get(name).presence.enter('data');
  await changes.next();
  proxy.refuse();
  const leave = await changes.next();
  expect(leave).toMatchObject({ action: 'leave', clientId: 'ann', data: 'data' });
  expect(leave.id.startsWith(String(leave.connectionId))).toBe(false);
  expect(await channel.presence.get()).toEqual([]);
  // The client enters again when it can connect.
  proxy.accept();
  expect(await changes.next()).toMatchObject({ action: 'enter', clientId: 'ann', data: 'data' });
});
