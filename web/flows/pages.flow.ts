import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Gateway } from './gateway';
import { Host } from './host';
import { Hub } from './hub';
import { onStage } from './stage';

const stage = onStage(Hub.withAdmin);

test('what was said is found, narrowed down, and gone to', async () => {
  const admin = await stage.hub.signIn('admin');
  const [kitchen, garden] = [await stage.hub.makeRoom(admin, 'Kitchen', []), await stage.hub.makeRoom(admin, 'Garden', [])];
  for (const [room, content] of [
    [kitchen, 'The soup needs salt'],
    [garden, 'Soup from our own carrots'],
    [garden, 'The carrots are up'],
  ]) {
    await stage.hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content });
  }
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  const { page } = tab;
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Find or do something' }).fill('soup');
  await page.getByRole('option', { name: 'All messages with “soup”' }).click();
  const results = page.getByRole('list', { name: 'What was found' }).getByRole('link');
  await expect.poll(() => results.count()).toBe(2);
  await page.getByRole('combobox', { name: 'Room' }).selectOption('Garden');
  await expect.poll(() => results.allTextContents()).toEqual([expect.stringContaining('Soup from our own carrots')]);
  await page.getByRole('searchbox', { name: 'Words to look for' }).fill('"needs salt"');
  await page.getByText('Nothing found').waitFor();
  await page.getByRole('combobox', { name: 'Room' }).selectOption('Every room');
  await results.filter({ hasText: 'The soup' }).click();
  await page.waitForURL(/\/app\/rooms\/[^/]+\/messages\//);
  await tab.said('The soup needs salt').waitFor();
  await page.goBack();
  await results.first().waitFor();
});

test('an agent is added with the commands that are shown, brought into a room, and answers', async () => {
  await stage.hub.makeRoom(await stage.hub.signIn('admin'), 'Kitchen', []);
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  const { page } = tab;
  await page.getByRole('link', { name: 'Agents' }).click();
  await page.getByText('You have no agents yet').waitFor();
  await page.getByRole('button', { name: 'Add an agent' }).click();
  await page.getByLabel('What it is called here').fill('Echo');
  await page.getByLabel('Kind').selectOption('A program of your own');
  await page.getByLabel('Program', { exact: true }).fill('tail -n 1');
  await page.getByRole('button', { name: 'Show the commands' }).click();
  await page.getByText('Waiting for Echo to connect').waitFor();
  const [join = '', gateway = ''] = await page.locator('[data-shown-once]').allTextContents();
  const host = new Host();
  try {
    await host.run(join);
    host.start(gateway);
    await page.getByText('Echo is here.').waitFor();
    await page.getByRole('button', { name: 'Show it' }).click();
    await page.getByText('online', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Bring it in' }).click();
    await page.getByRole('heading', { name: 'Kitchen', level: 1 }).waitFor();
    await tab.say('@Echo hello');
    await tab.said(/^(?=[\s\S]*Echo)[\s\S]*User: @Echo hello/).waitFor();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('link', { name: /^Echo/ }).click();
    await page.getByRole('list', { name: 'In these rooms' }).getByRole('link', { name: 'Kitchen' }).waitFor();
    await page.getByRole('list', { name: 'Lately' }).getByRole('link', { name: /^Answered Kitchen/ }).waitFor();
    await page.getByRole('button', { name: 'Remove the agent' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove the agent' }).click();
    await page.getByText('You have no agents yet').waitFor();
  } finally {
    await host.stop();
  }
});

test('somebody is brought into a room by name, made its admin, and taken out', async () => {
  const { hub, browser } = stage;
  const admin = await hub.signIn('admin');
  await hub.addPerson(admin, 'grace', 'Grace Hopper');
  await hub.makeRoom(admin, 'Kitchen', []);
  const [tab, other] = [await Tab.signedIn(browser, hub, 'admin'), await Tab.signedIn(browser, hub, 'grace')];
  const hers = other.page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name: 'Kitchen' });
  await tab.enter('Kitchen');
  await tab.page.getByRole('button', { name: 'Room', exact: true }).click();
  const panel = tab.page.getByRole('complementary', { name: 'Room' });
  await panel.getByRole('searchbox', { name: 'Add people or agents' }).fill('gra');
  await panel.getByRole('button', { name: /Grace Hopper/ }).click();
  await hers.waitFor();
  const menu = panel.getByRole('button', { name: 'More: Grace Hopper' });
  await menu.click();
  await tab.page.getByRole('menuitem', { name: 'Make admin' }).click();
  await panel.getByRole('listitem').filter({ hasText: /Grace Hopper[\s\S]*Admin/ }).waitFor();
  await menu.click();
  await tab.page.getByRole('menuitem', { name: 'Remove' }).click();
  await hers.waitFor({ state: 'detached' });
});

test('an agent is shared with somebody by name, and no longer', async () => {
  const { hub, browser } = stage;
  const admin = await hub.signIn('admin');
  await hub.addPerson(admin, 'grace', 'Grace Hopper');
  const gateway = await Gateway.connect(hub, admin, { id: 'coder', name: 'Coder' });
  const [tab, other] = [await Tab.signedIn(browser, hub, 'admin'), await Tab.signedIn(browser, hub, 'grace')];
  const { page } = tab;
  const seen = other.page.getByRole('main').getByRole('link', { name: /^Coder/ });
  await page.goto(`${hub.url}/app/agents/coder`);
  await page.getByLabel('Who may use it').selectOption('Some people, by name');
  await page.getByRole('searchbox', { name: 'Find whom to share it with' }).fill('gra');
  await page.getByRole('button', { name: /Grace Hopper/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('list', { name: 'Some people, by name' }).getByText('Grace Hopper').waitFor();
  await other.page.goto(`${hub.url}/app/agents`);
  await seen.waitFor();
  await page.reload();
  const whoMay = page.getByLabel('Who may use it');
  await whoMay.selectOption('Everybody on this hub');
  await page.getByRole('list', { name: 'Some people, by name' }).waitFor({ state: 'detached' });
  await whoMay.selectOption('Some people, by name');
  await page.getByRole('button', { name: 'No longer share it with Grace Hopper' }).click();
  await page.getByRole('list', { name: 'Some people, by name' }).waitFor({ state: 'detached' });
  await other.page.reload();
  await other.page.getByText('You have no agents yet').waitFor();
  expect(await seen.count()).toBe(0);
  gateway.close();
});

test('a task is made, given to somebody, moved and removed, and everybody sees it', async () => {
  const admin = await stage.hub.signIn('admin');
  const grace = await stage.hub.addPerson(admin, 'grace', 'Grace Hopper');
  await stage.hub.makeRoom(admin, 'Kitchen', [grace]);
  const [ada, other] = [
    await Tab.signedIn(stage.browser, stage.hub, 'admin'),
    await Tab.signedIn(stage.browser, stage.hub, 'grace'),
  ];
  for (const tab of [ada, other]) {
    await tab.enter('Kitchen');
    await tab.page.getByRole('button', { name: 'Tasks' }).click();
    await tab.page.getByText('Nothing to do').waitFor();
  }
  await ada.page.getByRole('button', { name: 'New task' }).click();
  await ada.page.getByLabel('What is to be done').fill('Peel the carrots');
  await ada.page.getByLabel('Who does it').selectOption('Grace Hopper');
  await ada.page.getByLabel('Until').fill('2001-02-03T04:05');
  await ada.page.getByRole('button', { name: 'Save' }).click();
  const column = (tab: Tab, name: string) => tab.page.getByRole('region', { name }).getByRole('listitem', { name: 'Peel the carrots' });
  await column(other, 'To do').getByText('Grace Hopper').waitFor();
  await other.page.getByRole('button', { name: 'More: Peel the carrots' }).click();
  await other.page.getByRole('menuitem', { name: 'Begin' }).click();
  await column(ada, 'Under way').waitFor();
  await ada.page.getByRole('button', { name: 'More: Peel the carrots' }).click();
  await ada.page.getByRole('menuitem', { name: 'Done' }).click();
  await column(other, 'Over').waitFor();
  await other.page.getByRole('button', { name: 'More: Peel the carrots' }).click();
  await other.page.getByRole('menuitem', { name: 'Remove' }).click();
  for (const tab of [ada, other]) {
    await tab.page.getByText('Nothing to do').waitFor();
  }
});

test('a message is said again in another room, under the name of who said it', async () => {
  const admin = await stage.hub.signIn('admin');
  const grace = await stage.hub.addPerson(admin, 'grace', 'Grace Hopper');
  const room = await stage.hub.makeRoom(admin, 'Kitchen', [grace]);
  await stage.hub.makeRoom(admin, 'Garden', []);
  await stage.hub.call(grace, 'POST', `/api/rooms/${room}/messages`, { content: 'We are out of carrots' });
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  await tab.enter('Kitchen');
  await tab.said('We are out of carrots').hover();
  await tab.page.getByRole('button', { name: 'More', exact: true }).click();
  await tab.page.getByRole('menuitem', { name: 'Forward' }).click();
  await tab.page.getByRole('searchbox', { name: 'To which room?' }).fill('gard');
  await tab.page.getByRole('dialog').getByRole('button', { name: 'Garden' }).click();
  await tab.page.getByRole('heading', { name: 'Garden', level: 1 }).waitFor();
  await tab.said(/Said by Grace Hopper elsewhere[\s\S]*We are out of carrots/).waitFor();
});
