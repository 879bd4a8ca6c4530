/** Agents of two users with one name: the unmodified client receives a different name for each of them. */
import { expect, inject, test } from 'vitest';
import { connected, subscribed, watching, type Ably } from './clients';

const PASSWORD = 'Correct-horse-7';

interface User {
  id: string;
  name: string;
  token: string;
}

interface Member {
  agentName?: string;
  agents?: { agentName: string }[];
}

interface Chat {
  type: string;
  text: string;
  agentName?: string;
  fromUsername: string;
}

/** Calls a route of the hub and returns the body of its answer. */
async function call(path: string, token: string, body: unknown): Promise<unknown> {
  const response = await fetch(`${inject('hub').url}/api/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer: unknown = await response.json();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

async function newUser(name: string): Promise<User> {
  await call('users', inject('hub').admin, { username: name, password: PASSWORD });
  const { token, userId } = (await call('auth/token', '', { username: name, password: PASSWORD })) as {
    token: string;
    userId: string;
  };
  return { id: userId, name, token };
}

/** Connects as the Jaibber SDK does, with tokens from `/api/ably/token`. */
function client(user: User): Promise<Ably.Realtime> {
  return connected({
    authCallback: (_, done) => {
      call('ably/token', user.token, {}).then(
        (details) => done(null, details as Ably.TokenDetails),
        (error: unknown) => done(String(error), null),
      );
    },
  });
}

test('the agents of two users with one name have different names in a project', async () => {
  const [ada, grace] = await Promise.all([newUser('ada-of-bot'), newUser('grace-of-bot')]);
  const { project } = (await call('projects', ada.token, { name: 'Two bots' })) as { project: { id: string } };
  await call(`projects/${project.id}/members`, ada.token, { username: grace.name, role: 'admin' });
  const channel = `jaibber:project:${project.id}`;
  const enter = async (user: User): Promise<Ably.RealtimeChannel> => {
    const own = (await client(user)).channels.get(channel);
    await own.presence.enter({
      userId: user.id, username: user.name, isAgent: true, agentName: 'bot', agents: [{ agentName: 'bot' }],
    });
    return own;
  };
  await enter(ada);
  const ofGrace = await enter(grace);
  const viewer = (await client(ada)).channels.get(channel);
  const changes = await watching(viewer);
  const ofMember = async (user: User): Promise<Member> =>
    (await changes.find((member) => member.clientId === user.id)).data as Member;
  expect(await ofMember(grace)).toMatchObject({ agentName: 'bot-grace-of-bot', agents: [{ agentName: 'bot-grace-of-bot' }] });
  const members = await viewer.presence.get();
  const names = members.map((member) => (member.data as Member).agentName);
  expect(names.sort()).toEqual(['bot', 'bot-grace-of-bot']);

  const seen = await subscribed(viewer);
  const asked = await subscribed(ofGrace);
  await call(`projects/${project.id}/messages`, ada.token, { text: '@bot-grace-of-bot are you there?' });
  await asked.find((message) => (message.data as Chat).text.startsWith('@bot-grace-of-bot'));
  await ofGrace.publish('message', {
    from: grace.id, fromUsername: 'bot', agentName: 'bot', isAgentMessage: true, projectId: project.id,
    messageId: 'reply-of-grace', type: 'response', text: 'I am here',
  });
  const answer = (await seen.find((message) => (message.data as Chat).text === 'I am here')).data as Chat;
  expect(answer).toMatchObject({ type: 'response', agentName: 'bot-grace-of-bot', fromUsername: 'bot-grace-of-bot' });
});
