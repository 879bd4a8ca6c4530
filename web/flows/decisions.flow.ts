import { expect, test } from 'vitest';
import { Tab } from './browser';
import { inCompany } from './company';

const here = inCompany();

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

test('a question of an agent is answered by one, and both see who and what', async () => {
  const { ada, grace, gateway } = here;
  await ada.say('@Coder make soup');
  const turn = await gateway.next('server:send_to_agent');
  gateway.chunk(turn, 'r1', 'text', 'One thing first.');
  gateway.tell(turn, { kind: 'question', questionId: 'q1', questions: QUESTIONS }, 'r1');
  const cards = [ada, grace].map((tab) => tab.page.getByRole('region', { name: 'Question' }));
  for (const card of cards) await card.getByRole('group', { name: 'Which soup?' }).waitFor();
  // Who comes back finds it still open.
  await grace.page.reload();
  const [first, second] = cards;
  await second?.getByRole('button', { name: /Leek/ }).click();
  await second?.getByRole('button', { name: 'Answer' }).click();
  const heard = await gateway.next('server:question_response');
  expect(heard).toMatchObject({ questionId: 'q1', status: 'answered', answeredBy: 'Grace Hopper' });
  expect(heard['answers']).toEqual([{ questionIndex: 0, selected: ['Leek'] }]);
  for (const card of cards) await card.getByText('Answered by Grace Hopper: Leek').waitFor();
  expect(await first?.getByRole('button', { name: 'Answer' }).count()).toBe(0);
  gateway.tell(turn, { kind: 'question', questionId: 'q2', questions: QUESTIONS }, 'r1');
  await first?.getByRole('textbox', { name: 'Something else' }).fill('No soup');
  await first?.getByRole('button', { name: 'Answer' }).click();
  const own = await gateway.next('server:question_response');
  expect(own['answers']).toEqual([{ questionIndex: 0, selected: [], customText: 'No soup' }]);
  gateway.tell(turn, { kind: 'question', questionId: 'q3', questions: QUESTIONS }, 'r1');
  await second?.getByRole('button', { name: 'Answer' }).waitFor();
  gateway.complete(turn, 'r1', 'One thing first.');
  for (const card of cards) await card.getByText('No answer is needed any more').waitFor();
});

test('a plan is put in other words and approved, and the agent carries it out', async () => {
  const { ada, grace, gateway } = here;
  await ada.say('@Coder plan the soup');
  const turn = await gateway.next('server:send_to_agent');
  gateway.tell(turn, { kind: 'plan', summary: 'Carrot soup', status: 'planned', items: ITEMS });
  gateway.complete(turn, 'r1', 'This is how I would do it.');
  await ada.said('This is how I would do it.').waitFor();
  const cards = [ada, grace].map((tab) => tab.page.getByRole('region', { name: 'Plan' }).filter({ hasText: 'Carrot soup' }));
  for (const card of cards) await card.getByText('proposed').waitFor();
  // It is kept with the reply it belongs to.
  await grace.page.reload();
  const [first, second] = cards;
  await second?.getByRole('button', { name: 'Edit' }).click();
  const field = second?.getByRole('textbox', { name: 'The plan in your words' });
  expect(await field?.inputValue()).toBe('1. Peel the carrots\n2. Boil them: Twenty minutes');
  await field?.fill('With ginger, please');
  await second?.getByRole('button', { name: 'Save' }).click();
  await first?.getByText('More').click();
  await first?.getByText('With ginger, please').waitFor();
  await first?.getByRole('button', { name: 'Approve' }).click();
  const told = await gateway.next('server:send_to_agent');
  expect(told['content']).toContain('With ginger, please');
  for (const card of cards) await card.getByText('approved').waitFor();
  for (const tab of [ada, grace]) expect(await tab.page.getByRole('region', { name: 'Plan' }).count()).toBe(1);
  gateway.tell(told, { kind: 'plan', summary: 'Ginger soup', status: 'planned', items: ITEMS });
  gateway.complete(told, 'r2', 'Or rather this way.');
  const another = grace.page.getByRole('region', { name: 'Plan' }).filter({ hasText: 'Ginger soup' });
  await another.getByRole('button', { name: 'Reject' }).click();
  const seen = ada.page.getByRole('region', { name: 'Plan' }).filter({ hasText: 'Ginger soup' });
  await seen.getByText('rejected').waitFor();
  expect(await seen.getByRole('button', { name: 'Approve' }).count()).toBe(0);
});

test('who looks elsewhere is called: for mentions, approvals, questions and what took long', async () => {
  const { browser, hub, gateway, ada, grace, room } = here;
  await grace.page.close();
  const tab = await Tab.signedIn(browser, hub, 'grace', { permissions: ['notifications'] });
  await tab.page.addInitScript(lookAway);
  await tab.page.reload();
  await tab.page.getByRole('navigation', { name: 'Rooms' }).waitFor();
  const shown = () => tab.page.evaluate(() => (globalThis as unknown as { shown: string[] }).shown);
  await expect.poll(() => tab.page.title()).toBe('Kitchen · Parlor');
  await tab.page.goto(`${hub.url}/app/agents`);
  await tab.page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  await ada.say('@grace, soup?');
  await expect.poll(shown).toEqual(['Ada Lovelace · Kitchen']);
  await expect.poll(() => tab.page.title()).toMatch(/^\(1\)/);
  await ada.say('@Coder make soup');
  const turn = await gateway.next('server:send_to_agent');
  gateway.chunk(turn, 'r1', 'text', 'One thing first.');
  gateway.ask(turn, 'p1', 'Bash', { command: 'peel' });
  await expect.poll(shown).toContain('Coder wants to use Bash');
  await expect.poll(() => tab.page.title()).toMatch(/^\(2\)/);
  gateway.tell(turn, { kind: 'question', questionId: 'q1', questions: QUESTIONS }, 'r1');
  await expect.poll(shown).toContain('Coder has a question');
  await expect.poll(() => tab.page.title()).toMatch(/^\(3\)/);
  await tab.page.evaluate(() => (Date.now = () => performance.timeOrigin + performance.now() + 60_000));
  gateway.complete(turn, 'r1', 'Soup is ready.');
  await expect.poll(shown).toContain('Coder is done · Kitchen');
  await tab.page.evaluate(() => (globalThis as unknown as { press: () => void }).press());
  await tab.page.waitForURL(`**/app/rooms/${room}`);
});

/** A tab in the background, that keeps what it notifies of where a test can see it. */
function lookAway(): void {
  const seen = globalThis as unknown as { shown: string[]; press: () => void };
  seen.shown = [];
  Object.defineProperty(document, 'hidden', { get: () => true });
  class Seen extends Notification {
    constructor(title: string, options?: NotificationOptions) {
      super(title, options);
      seen.shown.push(title);
      seen.press = () => this.onclick?.(new Event('click'));
    }
  }
  Object.defineProperty(globalThis, 'Notification', { value: Seen });
}
