import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Broker } from './broker';
import { Tab } from './browser';
import { setUpFlow } from './flow-context';
import { Hub, type Account } from './hub';

const flow = setUpFlow(Hub.withAdmin);
const AGENT = 'team/reader';

/** An admin whose agent has a session that subscribes to Slack. */
async function withSession(): Promise<{ admin: Account; broker: Broker }> {
  const admin = await flow.hub.signIn('admin');
  const broker = await Broker.connect(flow.hub, admin);
  await broker.createAgent(AGENT, { name: 'Reader' });
  await broker.subscribe(AGENT, 'slack', 'slack/**');
  return { admin, broker };
}

async function openAgent(): Promise<Tab> {
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  await tab.page.goto(`${flow.hub.url}/app/agents/${encodeURIComponent(AGENT)}`);
  return tab;
}

test('messages of a program appear in the inbox of the session, with their state and their payload as text', async () => {
  const { broker } = await withSession();
  await broker.route('slack-bridge', 'slack/team', { text: 'The build is red', link: '<img src=x onerror=alert(1)>' });
  const { page } = await openAgent();
  const sessions = page.getByRole('list', { name: 'Sessions' });
  const row = sessions.getByRole('button', { name: /^slack/ });
  await row.getByText('1 waiting').waitFor();
  await row.click();
  const inbox = page.getByRole('list', { name: 'Inbox: slack' });
  const first = inbox.getByRole('button', { name: /The build is red/ });
  await first.getByText('waiting').waitFor();
  await first.click();
  const payload = page.getByLabel('Content of the message');
  expect(await payload.textContent()).toContain('"link": "<img src=x onerror=alert(1)>"');
  expect(await page.locator('img[src=x]').count()).toBe(0);

  // An open inbox shows later messages and changed states without a reload.
  await broker.route('slack-bridge', 'slack/team', { text: 'The build is green' });
  await inbox.getByRole('button', { name: /The build is green/ }).waitFor();
  await broker.ask({ type: 'msg.session.receive', agentId: AGENT, sessionId: 'slack', lease: 600_000 });
  await row.getByText('2 in progress').waitFor();
  await expect.poll(() => inbox.getByText('in progress', { exact: true }).count()).toBe(2);
  await sessions.getByRole('button', { name: /^Own inbox/ }).click();
  const own = page.getByRole('list', { name: 'Inbox: Own inbox' }).getByRole('button', { name: /The build is red/ });
  await own.click();
  await page.getByRole('definition').filter({ hasText: `${AGENT}:slack` }).waitFor();
  broker.close();
});

test('the settings of a session are changed on the page', async () => {
  const { admin, broker } = await withSession();
  const room = await flow.hub.createRoom(admin, 'Releases', []);
  await flow.hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: AGENT, memberType: 'agent' });
  const { page } = await openAgent();
  const row = page.getByRole('list', { name: 'Sessions' }).getByRole('button', { name: /^slack|^Slack/ });
  await row.click();
  await page.getByRole('button', { name: 'Settings', exact: true }).click();
  const form = page.getByRole('form', { name: 'Settings: slack' });
  await form.getByLabel('Title').fill('Slack monitor');
  await form.getByLabel('Automatic turns').selectOption({ label: 'On' });
  await form.getByLabel('Triage model').fill('small');
  await form.getByLabel('Wait (seconds)').fill('0.5');
  await form.getByLabel('Maximum batch').fill('5');
  await form.getByLabel('Room').selectOption({ label: 'Releases' });
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
  await row.getByText('Slack monitor').waitFor();
  await row.getByText('posts in Releases').waitFor();
  await row.getByText('Automatic turns').waitFor();
  const slack = async () => {
    const { sessions } = await flow.hub.call(admin, 'GET', `/api/agents/${encodeURIComponent(AGENT)}/sessions`);
    return (sessions as Record<string, unknown>[]).find(({ id }) => id === 'slack') ?? {};
  };
  const stored = await slack();
  expect(stored['autoRun']).toEqual({ enabled: true, triageModel: 'small', debounceMs: 500, maxBatchSize: 5 });
  expect([stored['title'], stored['roomId']]).toEqual(['Slack monitor', room]);

  await page.getByRole('button', { name: 'Settings', exact: true }).click();
  const again = page.getByRole('form', { name: 'Settings: Slack monitor' });
  await again.getByLabel('Automatic turns').selectOption({ label: 'Like the agent (off)' });
  await again.getByLabel('Room').selectOption({ label: 'No room' });
  await again.getByRole('button', { name: 'Save' }).click();
  await again.waitFor({ state: 'detached' });
  const cleared = await slack();
  expect([cleared['autoRun'], cleared['roomId']]).toEqual([null, null]);
  broker.close();
});

test('the owner creates a session with a name that no other session has', async () => {
  const { admin, broker } = await withSession();
  const { page } = await openAgent();
  await page.getByRole('button', { name: 'New session' }).click();
  const form = page.getByRole('form', { name: 'New session' });
  const create = form.getByRole('button', { name: 'Create session' });
  await form.getByLabel('Name').fill('two words');
  expect(await create.isDisabled()).toBe(true);
  await form.getByLabel('Name').fill('slack');
  await form.getByRole('alert').filter({ hasText: 'A session has this name already' }).waitFor();
  expect(await create.isDisabled()).toBe(true);
  await form.getByLabel('Name').fill('review-2');
  await form.getByLabel('Title').fill('Code review');
  await create.click();
  await form.waitFor({ state: 'detached' });
  await page.getByRole('list', { name: 'Sessions' }).getByRole('button', { name: /^Code review/ }).click();
  await page.getByText('No turns yet').waitFor();
  const { sessions } = await flow.hub.call(admin, 'GET', `/api/agents/${encodeURIComponent(AGENT)}/sessions`);
  expect((sessions as Record<string, unknown>[]).map(({ id, title }) => [id, title])).toContainEqual(['review-2', 'Code review']);
  broker.close();
});

test('an agent whose folder disappeared is shown as missing until the folder is back', async () => {
  const root = mkdtempSync(join(tmpdir(), 'parlor-root-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const writeAgent = () => {
    mkdirSync(join(root, 'reader'));
    const agent = { id: 'reader', name: 'Reader', parlor: { kind: 'command', command: ['cat'] } };
    writeFileSync(join(root, 'reader', 'jvAgent.json'), JSON.stringify(agent));
  };
  writeAgent();
  const hub = await Hub.withAdmin({ PARLOR_AGENTS_ROOT: root });
  onTestFinished(() => hub.remove());
  const admin = await hub.signIn('admin');
  const isMissing = async () => {
    const response = await fetch(`${hub.url}/api/agents/reader`, { headers: { authorization: `Bearer ${admin.token}` } });
    return response.ok && ((await response.json()) as { data: { missing?: boolean } }).data.missing === true;
  };
  const { page } = await Tab.signedIn(flow.browser, hub, 'admin');
  await page.goto(`${hub.url}/app/agents`);
  const row = page.getByRole('main').getByRole('link', { name: /Reader/ });
  await row.waitFor();
  expect(await row.getByText('folder missing').count()).toBe(0);
  rmSync(join(root, 'reader'), { recursive: true });
  await expect.poll(isMissing).toBe(true);
  await page.reload();
  await row.getByText('folder missing').waitFor();
  await row.click();
  await page.getByText('has disappeared from the agents root').waitFor();
  writeAgent();
  await expect.poll(isMissing).toBe(false);
  await page.reload();
  await page.getByRole('heading', { name: 'Reader', level: 1 }).waitFor();
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  expect(await page.getByText('has disappeared from the agents root').count()).toBe(0);
});

test('an admin resends dead letters and clears the others', async () => {
  const { broker } = await withSession();
  const unmatched = await broker.route('crm', 'crm/leads', { text: 'A new lead' });
  await broker.route('crm', 'crm/other', { text: 'Nobody wants this' });
  await broker.route('slack-bridge', 'slack/team', { text: 'Never acknowledged' });
  // A copy that was leased five times and never acknowledged becomes a dead letter.
  const isDead = async () => {
    await broker.lease(AGENT, 1);
    const { messages } = await broker.ask({ type: 'msg.unmatched' });
    return (messages as { reason?: string }[]).some(({ reason }) => reason === 'not_acknowledged');
  };
  await expect.poll(isDead).toBe(true);

  const { page } = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  await page.goto(`${flow.hub.url}/app/settings/dead-letters`);
  const list = page.getByRole('list', { name: 'Dead letters' });
  const letter = (words: string) => list.getByRole('listitem').filter({ hasText: words });
  await letter('Never acknowledged').getByText('not acknowledged').waitFor();
  await letter('Never acknowledged').getByRole('button', { name: 'Resend' }).click();
  await page.getByRole('status').filter({ hasText: `Delivered to ${AGENT}` }).waitFor();
  await letter('Never acknowledged').waitFor({ state: 'detached' });
  const leased = await broker.lease(AGENT, 600_000);
  expect(leased.map(({ payload, attempts }) => [(payload as { text: string }).text, attempts])).toEqual([['Never acknowledged', 1]]);

  await letter('A new lead').getByRole('button', { name: 'Resend' }).click();
  await letter('A new lead').getByRole('alert').filter({ hasText: 'No mailbox subscribes' }).waitFor();
  await broker.subscribe(AGENT, 'sales', 'crm/leads');
  await letter('A new lead').getByRole('button', { name: 'Resend' }).click();
  await page.getByRole('status').filter({ hasText: `${AGENT}:sales` }).waitFor();
  await letter('A new lead').waitFor({ state: 'detached' });
  const { messages } = await broker.ask({ type: 'msg.session.receive', agentId: AGENT, sessionId: 'sales' });
  expect((messages as { id: string }[]).map(({ id }) => id)).toEqual([unmatched['id']]);

  await page.getByRole('button', { name: 'Clear all' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Clear all' }).click();
  await list.getByText('No dead letters').waitFor();
  await page.goto(`${flow.hub.url}/app/settings/audit`);
  const audit = page.getByRole('list', { name: 'Audit log' }).getByRole('listitem');
  await audit.filter({ hasText: /^admin removed all dead letters/ }).waitFor();
  await audit.filter({ hasText: new RegExp(`^admin resent a dead letter of ${AGENT}`) }).waitFor();
  broker.close();
});

test('other users see neither sessions of the agent nor dead letters', async () => {
  const { admin, broker } = await withSession();
  await flow.hub.call(admin, 'PUT', `/api/agents/${encodeURIComponent(AGENT)}`, { visibility: 'all' });
  await flow.hub.addUser(admin, 'grace', 'Grace Hopper');
  const { page } = await Tab.signedIn(flow.browser, flow.hub, 'grace');
  await page.goto(`${flow.hub.url}/app/agents/${encodeURIComponent(AGENT)}`);
  await page.getByRole('heading', { name: 'Reader', level: 1 }).waitFor();
  expect(await page.getByRole('heading', { name: 'Sessions' }).count()).toBe(0);
  await page.goto(`${flow.hub.url}/app/settings/dead-letters`);
  await page.getByRole('heading', { name: 'Profile' }).waitFor();
  expect(await page.getByRole('button', { name: 'Dead letters' }).count()).toBe(0);
  broker.close();
});
