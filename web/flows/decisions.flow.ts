import { expect, test } from 'vitest';
import { Tab } from './browser';
import { setUpSharedRoom } from './shared-room';

const shared = setUpSharedRoom();

const QUESTIONS = [
  {
    question: 'Which soup?',
    header: 'Soup',
    multiSelect: false,
    options: [{ label: 'Carrot', description: 'From our garden' }, { label: 'Leek' }],
  },
];
const ITEMS = [
  { title: 'Peel the carrots', status: 'pending' },
  { title: 'Boil them', description: 'Twenty minutes', status: 'pending' },
];

test('one user answers a question of an agent, and both users see the answer and its author', async () => {
  const { ada, grace, gateway } = shared;
  await ada.send('@Coder make soup');
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'text', 'One thing first.');
  gateway.runEvent(run, { kind: 'question', questionId: 'q1', questions: QUESTIONS }, 'r1');
  const cards = [ada, grace].map((tab) => tab.page.getByRole('region', { name: 'Question' }));
  for (const card of cards) await card.getByRole('group', { name: 'Which soup?' }).waitFor();
  // After a reload the question is still open.
  await grace.page.reload();
  const [first, second] = cards;
  await second?.getByRole('button', { name: /Leek/ }).click();
  await second?.getByRole('button', { name: 'Answer' }).click();
  const response = await gateway.next('server:question_response');
  expect(response).toMatchObject({ questionId: 'q1', status: 'answered', answeredBy: 'Grace Hopper' });
  expect(response['answers']).toEqual([{ questionIndex: 0, selected: ['Leek'] }]);
  for (const card of cards) await card.getByText('Answered by Grace Hopper: Leek').waitFor();
  expect(await first?.getByRole('button', { name: 'Answer' }).count()).toBe(0);
  gateway.runEvent(run, { kind: 'question', questionId: 'q2', questions: QUESTIONS }, 'r1');
  await first?.getByRole('textbox', { name: 'Other answer' }).fill('No soup');
  await first?.getByRole('button', { name: 'Answer' }).click();
  const own = await gateway.next('server:question_response');
  expect(own['answers']).toEqual([{ questionIndex: 0, selected: [], customText: 'No soup' }]);
  gateway.runEvent(run, { kind: 'question', questionId: 'q3', questions: QUESTIONS }, 'r1');
  await second?.getByRole('button', { name: 'Answer' }).waitFor();
  gateway.complete(run, 'r1', 'One thing first.');
  for (const card of cards) await card.getByText('Answer no longer needed').waitFor();
});

test('a plan is edited and approved, and the agent receives the edited text', async () => {
  const { ada, grace, gateway } = shared;
  await ada.send('@Coder plan the soup');
  const run = await gateway.next('server:send_to_agent');
  gateway.runEvent(run, { kind: 'plan', summary: 'Carrot soup', status: 'planned', items: ITEMS });
  gateway.complete(run, 'r1', 'This is how I would do it.');
  await ada.message('This is how I would do it.').waitFor();
  const cards = [ada, grace].map((tab) => tab.page.getByRole('region', { name: 'Plan' }).filter({ hasText: 'Carrot soup' }));
  for (const card of cards) await card.getByText('proposed').waitFor();
  // After a reload the plan is still shown with its reply.
  await grace.page.reload();
  const [first, second] = cards;
  await second?.getByRole('button', { name: 'Edit' }).click();
  const field = second?.getByRole('textbox', { name: 'Edit plan' });
  expect(await field?.inputValue()).toBe('1. Peel the carrots\n2. Boil them: Twenty minutes');
  await field?.fill('With ginger, please');
  await second?.getByRole('button', { name: 'Save' }).click();
  await first?.getByText('More').click();
  await first?.getByText('With ginger, please').waitFor();
  await first?.getByRole('button', { name: 'Approve' }).click();
  const nextRun = await gateway.next('server:send_to_agent');
  expect(nextRun['content']).toContain('With ginger, please');
  for (const card of cards) await card.getByText('approved').waitFor();
  for (const tab of [ada, grace]) expect(await tab.page.getByRole('region', { name: 'Plan' }).count()).toBe(1);
  gateway.runEvent(nextRun, { kind: 'plan', summary: 'Ginger soup', status: 'planned', items: ITEMS });
  gateway.complete(nextRun, 'r2', 'Or rather this way.');
  const another = grace.page.getByRole('region', { name: 'Plan' }).filter({ hasText: 'Ginger soup' });
  await another.getByRole('button', { name: 'Reject' }).click();
  const seen = ada.page.getByRole('region', { name: 'Plan' }).filter({ hasText: 'Ginger soup' });
  await seen.getByText('rejected').waitFor();
  expect(await seen.getByRole('button', { name: 'Approve' }).count()).toBe(0);
});

test('a background tab notifies of mentions, approvals, questions and long replies', async () => {
  const { browser, hub, gateway, ada, grace, room } = shared;
  await grace.page.close();
  const tab = await Tab.signedIn(browser, hub, 'grace', { permissions: ['notifications'] });
  await tab.page.addInitScript(hideTab);
  await tab.page.reload();
  await tab.page.getByRole('navigation', { name: 'Rooms' }).waitFor();
  const shown = () => tab.page.evaluate(() => (globalThis as unknown as { shown: string[] }).shown);
  await expect.poll(() => tab.page.title()).toBe('Kitchen · Parlor');
  await tab.page.goto(`${hub.url}/app/agents`);
  await tab.page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  await ada.send('@grace, soup?');
  await expect.poll(shown).toEqual(['Ada Lovelace · Kitchen']);
  await expect.poll(() => tab.page.title()).toMatch(/^\(1\)/);
  await ada.send('@Coder make soup');
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'text', 'One thing first.');
  gateway.requestPermission(run, 'p1', 'Bash', { command: 'peel' });
  await expect.poll(shown).toContain('Coder wants to use Bash');
  await expect.poll(() => tab.page.title()).toMatch(/^\(2\)/);
  gateway.runEvent(run, { kind: 'question', questionId: 'q1', questions: QUESTIONS }, 'r1');
  await expect.poll(shown).toContain('Coder has a question');
  await expect.poll(() => tab.page.title()).toMatch(/^\(3\)/);
  await tab.page.evaluate(() => (Date.now = () => performance.timeOrigin + performance.now() + 60_000));
  gateway.complete(run, 'r1', 'Soup is ready.');
  await expect.poll(shown).toContain('Coder is done · Kitchen');
  await tab.page.evaluate(() => (globalThis as unknown as { press: () => void }).press());
  await tab.page.waitForURL(`**/app/rooms/${room}`);
});

/** Init script: makes the tab look hidden, and records its notifications in `globalThis.shown`. */
function hideTab(): void {
  const recorded = globalThis as unknown as { shown: string[]; press: () => void };
  recorded.shown = [];
  Object.defineProperty(document, 'hidden', { get: () => true });
  class RecordedNotification extends Notification {
    constructor(title: string, options?: NotificationOptions) {
      super(title, options);
      recorded.shown.push(title);
      recorded.press = () => this.onclick?.(new Event('click'));
    }
  }
  Object.defineProperty(globalThis, 'Notification', { value: RecordedNotification });
}
