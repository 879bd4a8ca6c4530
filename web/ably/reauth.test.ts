/** Renewal of tokens on a live connection: wider and narrower capabilities, expiry and revocation. */
import { describe, expect, inject, test } from 'vitest';
import {
  Ably, FORMATS, channelName, connected, errorOf, expectExactly, keyWith, nextChannelEvent, nextEvent, reached, realtime, rest, subscribed,
} from './clients';
import { jwt } from './tokens';

type Capability = Record<string, Ably.capabilityOp[] | ['*']>;

describe.each(FORMATS)('in %s', (format) => {
  test('a new token widens the capability of the connection', async () => {
    const [first, second] = [channelName(), channelName()];
    const client = await withToken(format, { [first]: ['*'] });
    const id = client.connection.id;
    await client.channels.get(first).attach();
    expect((await errorOf(client.channels.get(second).attach())).code).toBe(40160);
    const updated = nextEvent(client, 'update');
    await client.auth.authorize(undefined, { authCallback: tokens({ [first]: ['*'], [second]: ['*'] }) });
    expect((await updated).current).toBe('connected');
    expect(client.connection.id).toBe(id);
    await client.channels.get(second).attach();
    await client.channels.get(second).publish('one', null);
    expect(client.channels.get(first).state).toBe('attached');
  });

  test('a new token narrows the capability of the connection', async () => {
    const [first, second] = [channelName(), channelName()];
    const client = await withToken(format, { [first]: ['*'], [second]: ['*'] });
    await Promise.all([client.channels.get(first).attach(), client.channels.get(second).attach()]);
    const failed = nextChannelEvent(client.channels.get(second), 'failed');
    await client.auth.authorize(undefined, { authCallback: tokens({ [first]: ['*'] }) });
    expect((await failed).reason?.code).toBe(40160);
    expect(client.channels.get(first).state).toBe('attached');
    await client.channels.get(first).publish('one', null);
    expect((await errorOf(client.channels.get(second).publish('one', null))).code).toBeGreaterThan(40000);
    expect(client.connection.state).toBe('connected');
  });

  test('a new token changes what a channel may do', async () => {
    const name = channelName();
    const client = await withToken(format, { [name]: ['*'] });
    const channel = client.channels.get(name);
    const inbox = await subscribed(channel);
    await channel.publish('one', null);
    await client.auth.authorize(undefined, { authCallback: tokens({ [name]: ['subscribe'] }) });
    expect((await errorOf(channel.publish('two', null))).code).toBe(40160);
    await client.auth.authorize(undefined, { authCallback: tokens({ [name]: ['*'] }) });
    await expectExactly(inbox, channel, ['one']);
  });

  test('messages pass while the token is renewed', async () => {
    const name = channelName();
    const client = await withToken(format, { [name]: ['*'] });
    const channel = client.channels.get(name);
    const inbox = await subscribed(channel);
    const publishing: Promise<unknown>[] = [];
    for (let at = 0; at < 60; at += 1) {
      publishing.push(channel.publish(`m${at}`, null));
      if (at % 20 === 10) publishing.push(client.auth.authorize(undefined, { authCallback: tokens({ [name]: ['*'] }) }));
    }
    await Promise.all(publishing);
    await expectExactly(inbox, channel, Array.from({ length: 60 }, (_, at) => `m${at}`));
  });

  test('a token of another client fails the connection', async () => {
    const name = channelName();
    const authCallback = tokens({ [name]: ['*'] }, { clientId: 'ann' });
    const client = await connected({ format, authCallback });
    expect(client.auth.clientId).toBe('ann');
    const failed = reached(client, 'failed');
    const error = await errorOf(client.auth.authorize(undefined, { authCallback: tokens({ [name]: ['*'] }, { clientId: 'bob' }) }));
    expect(error.code).toBe(40102);
    expect((await failed)?.code).toBe(40102);
  });

  test('the client renews its token before or when it expires', async () => {
    const name = channelName();
    let issued = 0;
    const lifetimes = [4_000, 60_000];
    const authCallback: Ably.AuthOptions['authCallback'] = (_, done) => {
      const ttl = lifetimes[Math.min(issued, lifetimes.length - 1)];
      issued += 1;
      rest().auth.requestToken({ ttl, capability: { [name]: ['*'] } }).then((token) => done(null, token), (error: unknown) => done(String(error), null));
    };
    const client = await connected({ format, authCallback });
    const id = client.connection.id;
    const channel = client.channels.get(name);
    const inbox = await subscribed(channel);
    const renewed = new Promise<void>((done) => {
      client.connection.on(['connected', 'update'], () => done());
    });
    await renewed;
    expect(issued).toBeGreaterThanOrEqual(2);
    expect(client.connection.id).toBe(id);
    await expectExactly(inbox, channel, []);
  });

  test('a client that cannot renew its token fails when it expires', async () => {
    const { token } = await rest().auth.requestToken({ ttl: 2_000 });
    const client = await connected({ format, token });
    expect((await reached(client, 'failed'))?.code).toBe(40171);
  });

  test('a REST request with an expired token is refused with the code for it', async () => {
    const expired = await rest().auth.requestToken({ ttl: 1 });
    while ((await rest().time()) <= (expired.expires ?? 0));
    // A client that repeats such a request sends the old header again, so this test reads the response itself.
    const headers = { authorization: `Bearer ${Buffer.from(expired.token).toString('base64')}` };
    const response = await fetch(`${inject('hub').url}/channels/x/messages`, { headers });
    expect([response.status, response.headers.get('x-ably-errorcode')]).toEqual([401, '40142']);
    expect(await response.json()).toMatchObject({ error: { code: 40142, statusCode: 401 } });
    const stuck = rest({ format, token: expired.token });
    expect((await errorOf(stuck.channels.get(channelName()).history())).code).toBe(40171);
  });
});

test('a revoked token is refused', async () => {
  const key = await keyWith({ '*': ['*'] });
  const [ann, bob] = await Promise.all(['ann', 'bob'].map((clientId) => rest({ key }).auth.requestToken({ clientId })));
  if (ann === undefined || bob === undefined) throw new Error('two tokens');
  const client = await connected({ token: ann.token });
  const failed = reached(client, 'failed');
  const result = await rest({ key }).auth.revokeTokens([{ type: 'clientId', value: 'ann' }]);
  expect(result).toMatchObject({ successCount: 1, failureCount: 0, results: [{ target: 'clientId:ann' }] });
  expect((await failed)?.code).toBe(40171);
  expect((await errorOf(rest({ token: ann.token }).channels.get(channelName()).history())).code).toBe(40171);
});

test('a revoked token is replaced by a new one', async () => {
  const key = await keyWith({ '*': ['*'] });
  let issued = 0;
  const authCallback: Ably.AuthOptions['authCallback'] = (_, done) => {
    issued += 1;
    const now = Math.floor(Date.now() / 1000);
    // The second token is issued after the revocation.
    done(null, jwt(key, { 'x-ably-clientId': 'ann', iat: issued === 1 ? now - 60 : now + 1 }));
  };
  const client = realtime({ authCallback });
  await reached(client, 'connected');
  const again = nextEvent(client, 'connected');
  await rest({ key }).auth.revokeTokens([{ type: 'clientId', value: 'ann' }]);
  await again;
  expect(issued).toBe(2);
});

async function withToken(format: (typeof FORMATS)[number], capability: Capability): Promise<Ably.Realtime> {
  return connected({ format, authCallback: tokens(capability) });
}

function tokens(capability: Capability, params: Ably.TokenParams = {}): Ably.AuthOptions['authCallback'] {
  return (_, done) => {
    rest().auth.requestToken({ ...params, capability } as Ably.TokenParams).then(
      (token) => done(null, token),
      (error: unknown) => done(String(error), null),
    );
  };
}
