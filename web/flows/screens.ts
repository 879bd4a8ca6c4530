/** Takes screenshots of every main state for review: `npm run screens` writes them to `screens/`. */
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, test } from 'vitest';
import { Broker } from './broker';
import { startBrowser, Tab } from './browser';
import { EventSource } from './events';
import { Gateway } from './gateway';
import { Hub, PASSWORD, type Account } from './hub';

const FOLDER = resolve(import.meta.dirname, '../screens');
const AGENT = { id: 'coder', name: 'Coder' };

const THEMES: [string, BrowserContextOptions][] = [
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['phone', { colorScheme: 'light', viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
];

let hub: Hub;
let browser: Browser;
let gateway: Gateway;
let admin: Account;
let room: string;

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  [hub, browser] = await Promise.all([Hub.fresh(), startBrowser()]);
  const tab = await Tab.open(browser, await hub.setupLink());
  await tab.page.getByLabel('Username').waitFor();
  await tab.page.screenshot({ path: `${FOLDER}/setup.png`, animations: 'disabled' });
  await tab.page.getByLabel('Username').fill('ada');
  await tab.page.getByLabel('Display name').fill('Ada Lovelace');
  await tab.page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await tab.page.getByRole('button', { name: 'Create account' }).click();
  await tab.message(/Four things to try/).waitFor();
  admin = await hub.signIn('ada');
  const grace = await hub.addUser(admin, 'grace', 'Grace Hopper');
  const alan = await hub.addUser(admin, 'alan', 'Alan Turing');
  room = await hub.createRoom(admin, 'Release 0.4', [grace, alan]);
  await hub.createRoom(admin, 'Kitchen', [grace]);
  gateway = await Gateway.connect(hub, admin, AGENT);
  await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: AGENT.id, memberType: 'agent' });
  const post = (who: Account, content: string, more = {}) =>
    hub.call(who, 'POST', `/api/rooms/${room}/messages`, { content, ...more });
  const morning = await post(grace, 'Morning! The tests are green again. Can we tag today?');
  await post(alan, 'Almost. The retry logic in `upload.ts` still gives up after one try, I would like that fixed first.');
  await post(alan, 'Not before lunch, please.', { replyToId: morning['id'] });
  await post(admin, '@Coder please make uploads retry three times, and show us the plan before you touch anything.');
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'thinking', 'Three attempts, growing pauses. Which errors are worth another try?');
  gateway.chunk(run, 'r1', 'tool_use', '{"path":"src/upload.ts"}', { toolName: 'Read', toolId: 't1' });
  gateway.chunk(run, 'r1', 'tool_result', '142 lines', { toolName: 'Read', toolId: 't1' });
  gateway.chunk(run, 'r1', 'tool_use', '{"pattern":"retry"}', { toolName: 'Grep', toolId: 't2' });
  gateway.chunk(run, 'r1', 'tool_result', '3 matches', { toolName: 'Grep', toolId: 't2' });
  const answer = `Uploads fail for good on the first network error. I would wrap the request:

\`\`\`ts
for (const pause of [0, 500, 2000]) {
  await wait(pause);
  const answer = await attempt(file);
  if (answer.ok || !isPassing(answer)) return answer;
}
\`\`\`

- only **passing** errors are tried again: 429, 502, 503, 504
- the pause grows, so a busy server is left in peace`;
  gateway.chunk(run, 'r1', 'text', answer);
  gateway.complete(run, 'r1', answer);
  await gateway.synced();
  const tasks = [
    { title: 'Wrap the request', description: 'Three attempts, growing pauses.', assigneeId: AGENT.id, assigneeType: 'agent' },
    { title: 'Write the release notes', assigneeId: grace.id, dueDate: '2026-01-05T09:00:00Z' },
    { title: 'Tell the testers', dueDate: '2099-01-05T09:00:00Z' },
    { title: 'Choose a name', assigneeId: alan.id },
  ];
  const created = [];
  for (const task of tasks) created.push(await hub.call(admin, 'POST', `/api/tasks/rooms/${room}`, task));
  for (const [index, status] of [[0, 'in_progress'], [3, 'completed']] as const) {
    await hub.call(admin, 'PUT', `/api/tasks/${String(created[index]?.['id'])}`, { status });
  }
  gateway.complete(await gateway.next('server:send_to_agent'), 'r2', 'I am on it.');
  await fillMailboxes();
});

/** Messages in all states for a session of the agent, and dead letters. */
async function fillMailboxes(): Promise<void> {
  const broker = await Broker.connect(hub, admin);
  const lease = (time: number) => broker.ask({ type: 'msg.session.receive', agentId: AGENT.id, sessionId: 'slack', lease: time });
  await broker.subscribe(AGENT.id, 'slack', 'slack/team/**');
  await broker.subscribe(AGENT.id, 'slack', 'email/support/*');
  await hub.call(admin, 'PUT', `/api/agents/${AGENT.id}/sessions/slack`, {
    title: 'Slack monitor',
    autoRun: { enabled: false, triageModel: 'small-model', debounceMs: 5000 },
    roomId: room,
  });
  await broker.route('slack-bridge', 'slack/team/#general', { text: 'Is somebody looking at the upload errors?', user: 'U0421' });
  for (let attempt = 0; attempt <= 5; attempt++) {
    await lease(1);
    await new Promise((done) => setTimeout(done, 5));
  }
  await broker.route('mail-bridge', 'email/support/uploads', { subject: 'Uploads fail since Monday', from: 'mary@example.org' });
  await broker.ask({ type: 'msg.session.receive', agentId: AGENT.id, sessionId: 'slack' });
  await broker.route('slack-bridge', 'slack/team/#releases', { text: 'Release 0.4 waits for the retries', user: 'U0007' });
  await lease(86_400_000);
  await broker.route('slack-bridge', 'slack/team/#general', { text: 'Any news? The customer has asked again this morning.', user: 'U0421' });
  await broker.route('crm', 'crm/leads/new', { text: 'A new lead', company: 'Analytical Engines Ltd', value: 12_500 });
  broker.close();
}
afterAll(async () => {
  gateway.close();
  await browser.close();
  await hub.remove();
});

test.each(THEMES)('%s', async (theme, options) => {
  const shoot = (name: string, { page } = tab) => page.screenshot({ path: `${FOLDER}/${theme}-${name}.png`, animations: 'disabled' });
  const signInTab = await Tab.open(browser, hub.url, options);
  await signInTab.page.getByLabel('Username').waitFor();
  const tab = await Tab.signedIn(browser, hub, 'ada', options);
  await shoot('sign-in', signInTab);
  const { page } = tab;
  const events = await EventSource.before(page);
  await page.goto(`${hub.url}/app/`);
  await page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name: 'Kitchen' }).waitFor();
  // On wide screens a room opens beside the room list.
  if (theme !== 'phone') await tab.field.waitFor();
  await shoot('home');
  await page.goto(`${hub.url}/app/rooms/welcome`);
  await tab.message(/Four things to try/).last().getByRole('listitem').first().waitFor();
  await shoot('welcome');
  await page.goto(`${hub.url}/app/rooms/${room}`);
  await tab.message('a busy server is left in peace').waitFor();
  await tab.message('for (const pause').locator('figure').waitFor();
  await shoot('room');

  const morning = tab.message('Can we tag today?').first();
  await morning.hover();
  await morning.getByRole('button', { name: 'More' }).click();
  await page.getByRole('menu').waitFor();
  await shoot('menu');
  await page.keyboard.press('Escape');
  await morning.getByRole('button', { name: 'View thread' }).click();
  await page.getByRole('complementary', { name: 'Thread' }).getByText('Not before lunch').waitFor();
  await shoot('thread');
  await page.getByRole('button', { name: 'Close' }).click();

  const emit = (event: Parameters<EventSource['emit']>[2]) => events.emit(room, AGENT.id, event);
  emit({ kind: 'model_fallback', data: { preferred_model: 'big-model', actual_model: 'small-model', reason: 'rate_limited' } });
  emit({ kind: 'run', phase: 'subagent_spawned', data: { subagent_id: 'tester', task: 'Run the suite' } });
  emit({ kind: 'run', phase: 'subagent_spawned', data: { subagent_id: 'reader', task: 'Read the log', parent_id: 'tester' } });
  emit({ kind: 'run', phase: 'subagent_spawned', data: { subagent_id: 'linter', task: 'Lint the code' } });
  emit({ kind: 'activity', phase: 'doing', text: 'Opening build.log', data: { status: 'calling_tool', parent_id: 'reader' } });
  const outcome = { type: 'none', status: 'failed', result: 'Two warnings' };
  emit({ kind: 'run', phase: 'subagent_result', data: { subagent_id: 'linter', outcome } });
  const items = [
    { title: 'Read the upload code', status: 'done' },
    { title: 'Wrap the request', description: 'Three attempts, growing pauses.', status: 'in_progress' },
    { title: 'Test it against a server that fails', status: 'pending' },
    { title: 'Update the changelog', status: 'skipped' },
  ];
  emit({ kind: 'run', phase: 'plan_update', data: { plan: { summary: 'Make uploads retry', status: 'planned', items } } });
  emit({ kind: 'activity', phase: 'doing', text: 'Reading src/upload.ts', data: { status: 'calling_tool' } });
  await page.getByRole('region', { name: 'Plan' }).waitFor();
  await shoot('plan');
  const diff = '@@ -1,3 +1,3 @@\n function upload(file) {\n-  return attempt(file);\n+  return retrying(() => attempt(file));\n }';
  const files = [{ path: 'src/upload.ts', summary: 'Modified', diff }];
  emit({ kind: 'run', phase: 'change_report', data: { files, truncated_count: 1 } });
  emit({ kind: 'run', phase: 'context_usage', data: { estimated_tokens: 41_500, token_limit: 200_000, message_count: 12 } });
  const options2 = [{ label: 'Three', description: 'As asked' }, { label: 'Five', description: 'For slow networks' }];
  const questions = [{ question: 'How many attempts?', header: 'Retries', multi_select: false, options: options2 }];
  emit({ kind: 'ask_user', data: { question_id: 'q', questions } });
  emit({ kind: 'queue', text: 'Queued 1 message', data: { items: [{ id: '1', preview: 'And the downloads?' }] } });
  await page.getByRole('region', { name: 'Question' }).waitFor();
  await page.getByText('src/upload.ts').last().click();
  await shoot('cards');
  emit({ kind: 'turn_complete', data: { duration_ms: 48_000 } });

  await page.getByRole('button', { name: 'Room details' }).click();
  await page.getByRole('complementary', { name: 'Room details' }).waitFor();
  await shoot('details');
  await page.getByRole('button', { name: 'Close' }).click();
  await tab.field.fill('@');
  await page.getByRole('listbox').waitFor();
  await shoot('mention');
  await tab.field.fill('');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Command palette' }).fill('retry');
  await page.getByRole('option').filter({ hasText: 'retry' }).first().waitFor();
  await shoot('palette');
  await page.keyboard.press('Escape');
  // The hub has processed the end of the previous run.
  await gateway.synced();
  await tab.send('@Coder go ahead');
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, `p-${theme}`, 'text', 'One question first.');
  gateway.requestPermission(run, `ask-${theme}`, 'Bash', { command: 'npm test -- --run upload', timeout: 120 });
  await page.getByRole('region', { name: /wants to use Bash/ }).waitFor();
  await shoot('permission');
  gateway.complete(run, `p-${theme}`, 'One question first.');
  await tab.message('One question first.').last().waitFor();
  await page.getByRole('button', { name: 'Freeze agents', exact: true }).click();
  await page.getByRole('button', { name: 'Unfreeze agents' }).waitFor();
  await shoot('frozen');
  await page.getByRole('button', { name: 'Unfreeze agents' }).click();
  await page.getByRole('button', { name: 'Freeze agents', exact: true }).waitFor();
  for (const section of ['account', 'security', 'appearance', 'keys', 'people', 'audit', 'dead-letters', 'limits', 'hub']) {
    await page.goto(`${hub.url}/app/settings/${section}`);
    await page.getByRole('heading', { level: 2 }).first().waitFor();
    await page.locator('[aria-busy=true]').waitFor({ state: 'detached' });
    await shoot(`settings-${section}`);
  }
  await page.goto(`${hub.url}/app/agents`);
  await page.getByRole('main').getByRole('link', { name: /Coder/ }).waitFor();
  await shoot('agents');
  await page.getByRole('button', { name: 'Add agent' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Tester');
  await shoot('agents-add');
  await page.getByRole('button', { name: 'Show setup commands' }).click();
  await page.getByText('Waiting for Tester').waitFor();
  await shoot('agents-commands');
  await page.goto(`${hub.url}/app/agents/${AGENT.id}`);
  await page.getByText('Working directory').waitFor();
  await shoot('agent');
  await page.getByRole('list', { name: 'Sessions' }).getByRole('button', { name: /^Slack monitor/ }).click();
  const inbox = page.getByRole('list', { name: 'Inbox: Slack monitor' });
  await inbox.getByRole('button', { name: /Any news/ }).click();
  await inbox.scrollIntoViewIfNeeded();
  await shoot('agent-inbox');
  await page.getByRole('button', { name: 'Settings', exact: true }).click();
  await page.getByRole('form').getByLabel('Automatic turns').selectOption({ label: 'On' });
  await shoot('agent-session');
  await page.goto(`${hub.url}/app/search?q=retry`);
  await page.getByRole('list', { name: 'Search results' }).getByRole('link').first().waitFor();
  await shoot('search');
  await page.goto(`${hub.url}/app/missions`);
  await page.getByRole('heading', { name: 'Missions', level: 1 }).waitFor();
  await page.locator('[aria-busy=true]').waitFor({ state: 'detached' });
  await shoot('missions');
  await page.goto(`${hub.url}/app/missions/${room}`);
  await page.getByRole('button', { name: 'Set mission' }).click();
  await page.getByRole('checkbox', { name: 'Coder' }).waitFor();
  await shoot('mission');
  await page.goto(`${hub.url}/app/rooms/${room}/tasks`);
  await page.getByRole('listitem', { name: 'Wrap the request' }).waitFor();
  await shoot('tasks');
});
