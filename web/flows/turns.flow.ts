import { expect, test } from 'vitest';
import { Broker } from './broker';
import { Tab } from './browser';
import { setUpFlow } from './flow-context';
import { Gateway } from './gateway';
import { Hub } from './hub';

const flow = setUpFlow(Hub.withAdmin);
const AGENT = { id: 'coder', name: 'Coder' };

/** The page of an agent whose session `slack` starts turns for messages. A Parlor gateway hosts the agent. */
async function withAutomaticTurns() {
  const admin = await flow.hub.signIn('admin');
  const gateway = await Gateway.connect(flow.hub, admin, AGENT, 'laptop', { parlor: true });
  const broker = await Broker.connect(flow.hub, admin);
  await broker.subscribe(AGENT.id, 'slack', 'slack/**');
  const autoRun = { enabled: true, debounceMs: 20 };
  await flow.hub.call(admin, 'PUT', `/api/agents/${AGENT.id}/sessions/slack`, { autoRun });
  const { page } = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  await page.goto(`${flow.hub.url}/app/agents/${AGENT.id}`);
  await page.getByRole('list', { name: 'Sessions' }).waitFor();
  return { admin, gateway, broker, page };
}

test('the owner follows a turn without a room, decides its approval and reads why it started', async () => {
  const { gateway, broker, page } = await withAutomaticTurns();
  await broker.route('slack-bridge', 'slack/team', { text: 'The build is red' });
  const run = await gateway.next('server:send_to_agent');
  expect([run['sessionId'], run['roomId']]).toEqual(['slack', undefined]);
  gateway.chunk(run, 'r1', 'text', 'Looking at the build');
  const session = page.getByRole('region', { name: 'in session slack' });
  await session.getByText('Looking at the build').waitFor();
  gateway.requestPermission(run, 'ask', 'Bash', { command: 'npm test' });
  const request = session.getByRole('region', { name: /wants to use Bash/ });
  await request.getByRole('button', { name: 'Allow once' }).click();
  const decision = await gateway.next('server:permission_response');
  expect(decision['decision']).toBe('allow');
  gateway.complete(run, 'r1', 'Looking at the build: fixed.');
  const turns = page.getByRole('list', { name: 'Automatic turns' }).getByRole('listitem');
  await turns.filter({ hasText: 'turn started' }).waitFor();
  await turns.filter({ hasText: 'answered' }).first().waitFor();
  await page.getByText('1 answered', { exact: true }).waitFor();
  const recent = page.getByRole('list', { name: 'Recent activity' }).getByRole('listitem');
  await recent.filter({ hasText: 'in session slack' }).getByText('Answered').waitFor();
  await page.getByRole('list', { name: 'Sessions' }).getByRole('button', { name: /^slack/ }).click();
  await page.getByRole('list', { name: 'Inbox: slack' }).getByText('delivered').waitFor();
  gateway.close();
  broker.close();
});

test('the owner stops a turn without a room', async () => {
  const { gateway, broker, page } = await withAutomaticTurns();
  await broker.route('slack-bridge', 'slack/team', { text: 'Count to a million' });
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'text', 'One, two');
  const recent = page.getByRole('list', { name: 'Recent activity' }).getByRole('listitem');
  await recent.filter({ hasText: 'in session slack' }).getByRole('button', { name: 'Stop' }).click();
  const stop = await gateway.next('server:stop_agent');
  expect([stop['sessionId'], stop['roomId']]).toEqual(['slack', undefined]);
  gateway.complete(run, 'r1', 'One, two');
  await recent.filter({ hasText: 'in session slack' }).getByText('Stopped').waitFor();
  gateway.close();
  broker.close();
});
