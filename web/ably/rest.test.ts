/** The REST API: time, publishing, batches, status, requests, errors and the envelope of browsers. */
import { describe, expect, inject, test } from 'vitest';
import { FORMATS, Ably, channelName, connected, errorOf, keyWith, rest, subscribed } from './clients';

describe.each(FORMATS)('in %s', (format) => {
  test('the hub has a time', async () => {
    const time = await rest({ format }).time();
    expect(Math.abs(time - Date.now())).toBeLessThan(60_000);
  });

  test('one message and many are published', async () => {
    const client = await connected({ format });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    const remote = rest({ format }).channels.get(channel.name);
    const one = await remote.publish('one', { a: 1 });
    const many = await remote.publish([{ name: 'two', data: 'x' }, { name: 'three', clientId: 'ann' }]);
    const messages = await inbox.take(3);
    expect(messages.map((message) => message.name)).toEqual(['one', 'two', 'three']);
    expect([...one.serials, ...many.serials]).toEqual(messages.map((message) => message.serial));
    expect(messages[0]?.connectionId).toBeUndefined();
    expect(messages[2]?.clientId).toBe('ann');
  });

  test('a repeated request publishes once', async () => {
    const channel = rest({ format }).channels.get(channelName());
    const id = `${channelName('id')}:0`;
    const first = await channel.publish({ name: 'one', id });
    const again = await channel.publish({ name: 'one', id });
    expect(again.serials).toEqual(first.serials);
    expect((await channel.history()).items.map((message) => message.id)).toEqual([id]);
  });

  test('a message is published on behalf of a connection', async () => {
    const client = await connected({ format, clientId: 'ann' });
    const channel = client.channels.get(channelName());
    const inbox = await subscribed(channel);
    await rest({ format, clientId: 'ann' }).channels.get(channel.name).publish({ name: 'one', connectionKey: client.connection.key });
    expect(await inbox.next()).toMatchObject({ connectionId: client.connection.id, clientId: 'ann' });
    const forged = rest({ format }).channels.get(channel.name).publish({ name: 'two', connectionKey: 'unknown!key' });
    expect((await errorOf(forged)).statusCode).toBeGreaterThanOrEqual(400);
  });

  test('a batch is published on many channels', async () => {
    const [one, two] = [channelName(), channelName()];
    const key = await keyWith({ [one]: ['publish', 'history'], [two]: ['publish', 'history'] });
    const client = rest({ format, key });
    const spec = { channels: [one, two], messages: [{ name: 'a', data: 'x' }, { name: 'b', data: { y: 1 } }] };
    const result = await client.batchPublish(spec);
    expect(result).toMatchObject({ successCount: 2, failureCount: 0 });
    expect(result.results.map((each) => each.channel)).toEqual([one, two]);
    for (const name of [one, two]) {
      const { items } = await client.channels.get(name).history({ direction: 'forwards' });
      expect(items.map((message) => [message.name, message.data as unknown])).toEqual([['a', 'x'], ['b', { y: 1 }]]);
    }
    const mixed = await client.batchPublish([spec, { channels: [channelName(), ':invalid'], messages: [{ name: 'c' }] }]);
    expect(mixed.map((each) => [each.successCount, each.failureCount])).toEqual([[2, 0], [0, 2]]);
    expect((mixed[1]?.results[0] as Ably.BatchPublishFailureResult).error.code).toBe(40160);
  });

  test('the presence of many channels is read', async () => {
    const [one, two] = [channelName(), channelName()];
    const client = await connected({ format, clientId: 'ann' });
    await client.channels.get(one).presence.enter('data');
    // The declared type is a list, but the client returns the body, in which actions are numbers.
    const result: unknown = await rest({ format }).batchPresence([one, two]);
    const [first, second] = [{ channel: one, presence: [{ clientId: 'ann', action: 1 }] }, { channel: two, presence: [] }];
    expect(result).toMatchObject({ successCount: 2, failureCount: 0, results: [first, second] });
  });

  test('a channel has a status', async () => {
    const client = await connected({ format, clientId: 'ann' });
    const channel = client.channels.get(channelName());
    await channel.attach();
    await channel.presence.enter();
    const details = await rest({ format }).channels.get(channel.name).status();
    expect(details.channelId).toBe(channel.name);
    expect(details.status.isActive).toBe(true);
    expect(details.status.occupancy.metrics).toMatchObject({ connections: 1, presenceMembers: 1 });
    const unused = await rest({ format }).channels.get(channelName()).status();
    expect(unused.status.isActive).toBe(false);
    const limited = rest({ format, key: await keyWith({ [channel.name]: ['subscribe'] }) });
    expect((await errorOf(limited.channels.get(channel.name).status())).code).toBe(40160);
  });

  test('requests return the response with its status', async () => {
    const client = rest({ format });
    const name = channelName();
    const posted = await client.request('post', `/channels/${name}/messages`, 6, {}, { name: 'one', data: 'x' });
    expect([posted.success, posted.statusCode]).toEqual([true, 201]);
    await client.channels.get(name).publish('two', 'y');
    const page = await client.request('get', `/channels/${name}/messages`, 6, { limit: 1, direction: 'forwards' });
    expect(page.items).toMatchObject([{ name: 'one', data: 'x' }]);
    const next = await page.next();
    expect(next?.items).toMatchObject([{ name: 'two' }]);
    const missing = await client.request('get', '/keys/unknown/nothing', 6);
    expect([missing.success, missing.statusCode]).toEqual([false, 404]);
    const invalid = await client.request('get', `/channels/${name}/messages`, 6, { limit: 0 });
    expect([invalid.success, invalid.statusCode, invalid.errorCode]).toEqual([false, 400, 40003]);
    expect(invalid.errorMessage).toMatch(/limit/);
  });

  test('statistics are empty', async () => {
    const stats = await rest({ format }).stats();
    expect(stats.items).toEqual([]);
  });

  test('errors have a code and a sentence', async () => {
    const limited = rest({ format, key: await keyWith({ other: ['publish'] }) });
    const error = await errorOf(limited.channels.get(channelName()).publish('one', null));
    expect(error).toMatchObject({ code: 40160, statusCode: 401 });
    expect(error.message).not.toBe('');
    const wrong = rest({ format, key: `${inject('hub').key.split(':')[0]}:wrong` });
    expect(await errorOf(wrong.channels.get(channelName()).history())).toMatchObject({ code: 40101, statusCode: 401 });
    expect((await errorOf(rest({ format }).channels.get(':invalid').publish('one', null))).code).toBe(40010);
  });

  test('a message over the limit is refused', async () => {
    const channel = rest({ format, maxMessageSize: 100_000_000 }).channels.get(channelName());
    const error = await errorOf(channel.publish('large', 'x'.repeat(3 * 1024 * 1024)));
    expect([40009, 41300]).toContain(error.code);
  });
});

test('a request needs a credential', async () => {
  const response = await fetch(`${inject('hub').url}/channels/x/messages`);
  expect(response.status).toBe(401);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(response.headers.get('x-ably-errorcode')).toBe('40106');
  expect(await response.json()).toMatchObject({ error: { code: 40106, statusCode: 401 } });
});

test('a browser reads links from the envelope and passes the preflight', async () => {
  const { url, key } = inject('hub');
  const name = channelName();
  const channel = rest().channels.get(name);
  for (const text of ['one', 'two']) await channel.publish(text, null);
  const path = `${url}/channels/${name}/messages`;
  const preflight = await fetch(path, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://example.com',
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'authorization,x-ably-version,ably-agent',
    },
  });
  expect(preflight.ok).toBe(true);
  expect(preflight.headers.get('access-control-allow-origin')).toMatch(/\*|https:\/\/example.com/);
  const allowed = (preflight.headers.get('access-control-allow-headers') ?? '').toLowerCase();
  expect(allowed === '*' ? 'authorization' : allowed).toContain('authorization');
  const headers = { authorization: `Basic ${Buffer.from(key).toString('base64')}`, origin: 'https://example.com' };
  const response = await fetch(`${path}?limit=1&envelope=json`, { headers });
  const body = (await response.json()) as { statusCode: number; headers: Record<string, string>; response: unknown };
  expect(body).toMatchObject({ statusCode: 200, response: [{ name: 'two' }] });
  const link = Object.entries(body.headers).find(([header]) => header.toLowerCase() === 'link');
  expect(link?.[1]).toMatch(/rel="next"/);
  const failed = await fetch(`${path}?limit=0&envelope=json`, { headers });
  expect(await failed.json()).toMatchObject({ statusCode: 400, response: { error: { code: 40003 } } });
});

test('links have the form that the client parses', async () => {
  const { url, key } = inject('hub');
  const name = channelName();
  for (const text of ['one', 'two']) await rest().channels.get(name).publish(text, null);
  const headers = { authorization: `Basic ${Buffer.from(key).toString('base64')}` };
  const response = await fetch(`${url}/channels/${name}/messages?limit=1`, { headers });
  const links = (response.headers.get('link') ?? '').split(/,\s*(?=<)/);
  expect(links.map((link) => /^<(\.\/messages\?[^>]*)>; rel="(\w+)"$/.exec(link)?.[2])).toEqual(['first', 'current', 'next']);
});

test('a batch in version 2 is answered with a flat list', async () => {
  const { url, key } = inject('hub');
  const name = channelName();
  const response = await fetch(`${url}/messages`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(key).toString('base64')}`,
      'content-type': 'application/json',
      'x-ably-version': '2',
    },
    body: JSON.stringify({ channels: [name], messages: { name: 'one', data: 'x' } }),
  });
  expect(await response.json()).toMatchObject([{ channel: name }]);
});
