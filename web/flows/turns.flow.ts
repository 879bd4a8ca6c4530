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

test('the owner starts a turn by hand and reads prompts, answers and the stop in the conversation of the session', async () => {
  const { gateway, broker, page } = await withAutomaticTurns();
  await page.getByRole('list', { name: 'Sessions' }).getByRole('button', { name: /^slack/ }).click();
  await page.getByText('No turns yet').waitFor();
  const form = page.getByRole('form', { name: 'Start a turn: slack' });
  const start = form.getByRole('button', { name: 'Start turn' });
  const prompt = form.getByLabel('Prompt');
  expect(await start.isDisabled()).toBe(true);
  await prompt.fill('Sum up the day <img src=x onerror=alert(1)>');
  await start.click();
  await form.getByRole('status').filter({ hasText: 'The turn is queued' }).waitFor();
  expect(await prompt.inputValue()).toBe('');
  const log = page.getByRole('list', { name: 'Conversation: slack' }).getByRole('listitem');
  const byHand = await gateway.next('server:send_to_agent');
  expect([byHand['sessionId'], byHand['roomId']]).toEqual(['slack', undefined]);
  gateway.chunk(byHand, 'r1', 'text', 'A quiet day. <b>Nothing</b> failed.');
  gateway.complete(byHand, 'r1', 'A quiet day. <b>Nothing</b> failed.');
  await log.filter({ hasText: 'A quiet day. <b>Nothing</b> failed.' }).getByText('answer', { exact: true }).waitFor();
  await log.filter({ hasText: 'Sum up the day <img src=x onerror=alert(1)>' }).getByText('prompt', { exact: true }).waitFor();
  expect(await page.locator('img[src=x]').count()).toBe(0);

  await broker.route('slack-bridge', 'slack/team', { text: 'The build is red' });
  const automatic = await gateway.next('server:send_to_agent');
  gateway.complete(automatic, 'r2', 'Restarted the build.');
  await log.filter({ hasText: 'Restarted the build.' }).getByText('automatic answer').waitFor();
  await log.filter({ hasText: 'The build is red' }).getByText('automatic turn').waitFor();
  await prompt.fill('Count to a million');
  await start.click();
  const stopped = await gateway.next('server:send_to_agent');
  const recent = page.getByRole('list', { name: 'Recent activity' }).getByRole('listitem');
  await recent.filter({ hasText: 'in session slack' }).getByRole('button', { name: 'Stop' }).click();
  await gateway.next('server:stop_agent');
  gateway.complete(stopped, 'r3', '');
  await log.filter({ hasText: 'Stopped by a user' }).getByText('not finished').waitFor();
  // Oldest first, each with its time.
  const labels = await log.evaluateAll((items) => items.map((item) => item.querySelector('div')?.firstElementChild?.textContent));
  expect(labels).toEqual(['prompt', 'answer', 'automatic turn', 'automatic answer', 'prompt', 'not finished']);
  expect(await log.locator('time').count()).toBe(6);
  gateway.close();
  broker.close();
});

test('a long entry is folded, and earlier entries are loaded on request', async () => {
  const { gateway, broker, page } = await withAutomaticTurns();
  await page.getByRole('list', { name: 'Sessions' }).getByRole('button', { name: /^slack/ }).click();
  const form = page.getByRole('form', { name: 'Start a turn: slack' });
  const log = page.getByRole('list', { name: 'Conversation: slack' }).getByRole('listitem');
  for (let turn = 1; turn <= 6; turn++) {
    await form.getByLabel('Prompt').fill(`Question ${turn}`);
    await form.getByRole('button', { name: 'Start turn' }).click();
    const run = await gateway.next('server:send_to_agent');
    const answer = turn === 6 ? `${'line\n'.repeat(30)}the end` : `Answer ${turn}`;
    gateway.complete(run, `r${turn}`, answer);
    await log.filter({ hasText: turn === 6 ? 'the end' : answer }).waitFor();
  }
  expect(await log.count()).toBe(10);
  await page.getByRole('button', { name: 'Show earlier entries' }).click();
  await log.filter({ hasText: 'Question 1' }).waitFor();
  expect(await log.count()).toBe(12);
  expect(await page.getByRole('button', { name: 'Show earlier entries' }).count()).toBe(0);
  const long = log.filter({ hasText: 'the end' });
  const height = async () => (await long.boundingBox())?.height ?? 0;
  const folded = await height();
  await long.getByRole('button', { name: 'Show all' }).click();
  await long.getByRole('button', { name: 'Show less' }).waitFor();
  expect(await height()).toBeGreaterThan(folded);
  gateway.close();
  broker.close();
});
