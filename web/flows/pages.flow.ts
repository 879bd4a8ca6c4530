import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Gateway } from './gateway';
import { Host } from './host';
import { Hub } from './hub';
import { setUpFlow } from './flow-context';

const flow = setUpFlow(Hub.withAdmin);

test('a message is found by search, filtered by room, and opened', async () => {
  const admin = await flow.hub.signIn('admin');
  const [kitchen, garden] = [await flow.hub.createRoom(admin, 'Kitchen', []), await flow.hub.createRoom(admin, 'Garden', [])];
  for (const [room, content] of [
    [kitchen, 'The soup needs salt'],
    [garden, 'Soup from our own carrots'],
    [garden, 'The carrots are up'],
  ]) {
    await flow.hub.call(admin, 'POST', `/api/rooms/${room}/messages`, { content });
  }
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  const { page } = tab;
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Command palette' }).fill('soup');
  await page.getByRole('option', { name: 'Search messages for “soup”' }).click();
  const results = page.getByRole('list', { name: 'Search results' }).getByRole('link');
  await expect.poll(() => results.count()).toBe(2);
  await page.getByRole('combobox', { name: 'Room' }).selectOption('Garden');
  await expect.poll(() => results.allTextContents()).toEqual([expect.stringContaining('Soup from our own carrots')]);
  await page.getByRole('searchbox', { name: 'Search messages' }).fill('"needs salt"');
  await page.getByText('No results').waitFor();
  await page.getByRole('combobox', { name: 'Room' }).selectOption('All rooms');
  await results.filter({ hasText: 'The soup' }).click();
  await page.waitForURL(/\/app\/rooms\/[^/]+\/messages\//);
  await tab.message('The soup needs salt').waitFor();
  await page.goBack();
  await results.first().waitFor();
});

test('an agent that connects appears on the agents page without a reload', async () => {
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  const { page } = tab;
  await page.getByRole('link', { name: 'Agents' }).click();
  await page.getByText('You have no agents yet').waitFor();
  const gateway = await Gateway.connect(flow.hub, await flow.hub.signIn('admin'), { id: 'coder', name: 'Coder' });
  await page.getByRole('link', { name: /Coder/ }).waitFor();
  gateway.close();
});

test('an agent is connected with the setup commands, added to a room, and answers', async () => {
  await flow.hub.createRoom(await flow.hub.signIn('admin'), 'Kitchen', []);
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  const { page } = tab;
  await page.getByRole('link', { name: 'Agents' }).click();
  await page.getByText('You have no agents yet').waitFor();
  await page.getByRole('button', { name: 'Add agent' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Echo');
  await page.getByLabel('Type', { exact: true }).selectOption('Custom command');
  await page.getByLabel('Command', { exact: true }).fill('tail -n 1');
  await page.getByRole('button', { name: 'Show setup commands' }).click();
  await page.getByText('Waiting for Echo to connect').waitFor();
  const [join = '', gateway = ''] = await page.locator('[data-shown-once]').allTextContents();
  const host = new Host();
  try {
    await host.run(join);
    host.start(gateway);
    await page.getByText('Echo is connected.').waitFor();
    await page.getByRole('button', { name: 'View agent' }).click();
    await page.getByText('online', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Add to room' }).click();
    await page.getByRole('heading', { name: 'Kitchen', level: 1 }).waitFor();
    await tab.send('@Echo hello');
    await tab.message(/^(?=[\s\S]*Echo)[\s\S]*User: @Echo hello/).waitFor();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('link', { name: /^Echo/ }).click();
    await page.getByRole('list', { name: 'In rooms' }).getByRole('link', { name: 'Kitchen' }).waitFor();
    await page.getByRole('list', { name: 'Recent activity' }).getByRole('link', { name: /^Answered Kitchen/ }).waitFor();
    await page.getByRole('button', { name: 'Remove agent' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove agent' }).click();
    await page.getByText('You have no agents yet').waitFor();
  } finally {
    await host.stop();
  }
});

test('a user is added to a room by name, made an admin, and removed', async () => {
  const { hub, browser } = flow;
  const admin = await hub.signIn('admin');
  await hub.addUser(admin, 'grace', 'Grace Hopper');
  await hub.createRoom(admin, 'Kitchen', []);
  const [tab, other] = [await Tab.signedIn(browser, hub, 'admin'), await Tab.signedIn(browser, hub, 'grace')];
  const hers = other.page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name: 'Kitchen' });
  await tab.enter('Kitchen');
  await tab.page.getByRole('button', { name: 'Room details' }).click();
  const panel = tab.page.getByRole('complementary', { name: 'Room details' });
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

test('an agent is shared with a user by name, and unshared', async () => {
  const { hub, browser } = flow;
  const admin = await hub.signIn('admin');
  await hub.addUser(admin, 'grace', 'Grace Hopper');
  const gateway = await Gateway.connect(hub, admin, { id: 'coder', name: 'Coder' });
  const [tab, other] = [await Tab.signedIn(browser, hub, 'admin'), await Tab.signedIn(browser, hub, 'grace')];
  const { page } = tab;
  const seen = other.page.getByRole('main').getByRole('link', { name: /^Coder/ });
  await page.goto(`${hub.url}/app/agents/coder`);
  await page.getByLabel('Who can use it').selectOption('Specific people');
  await page.getByRole('searchbox', { name: 'Search people' }).fill('gra');
  await page.getByRole('button', { name: /Grace Hopper/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('list', { name: 'Specific people' }).getByText('Grace Hopper').waitFor();
  await other.page.goto(`${hub.url}/app/agents`);
  await seen.waitFor();
  await page.reload();
  const whoMay = page.getByLabel('Who can use it');
  await whoMay.selectOption('Everyone on this hub');
  await page.getByRole('list', { name: 'Specific people' }).waitFor({ state: 'detached' });
  await whoMay.selectOption('Specific people');
  await page.getByRole('button', { name: 'Stop sharing with Grace Hopper' }).click();
  await page.getByRole('list', { name: 'Specific people' }).waitFor({ state: 'detached' });
  await other.page.reload();
  await other.page.getByText('You have no agents yet').waitFor();
  expect(await seen.count()).toBe(0);
  gateway.close();
});

test('a task is created, assigned, moved and removed, and all members see it', async () => {
  const admin = await flow.hub.signIn('admin');
  const grace = await flow.hub.addUser(admin, 'grace', 'Grace Hopper');
  await flow.hub.createRoom(admin, 'Kitchen', [grace]);
  const [ada, other] = [
    await Tab.signedIn(flow.browser, flow.hub, 'admin'),
    await Tab.signedIn(flow.browser, flow.hub, 'grace'),
  ];
  for (const tab of [ada, other]) {
    await tab.enter('Kitchen');
    await tab.page.getByRole('button', { name: 'Tasks' }).click();
    await tab.page.getByText('No tasks yet').waitFor();
  }
  await ada.page.getByRole('button', { name: 'New task' }).click();
  await ada.page.getByLabel('Title').fill('Peel the carrots');
  await ada.page.getByLabel('Assignee').selectOption('Grace Hopper');
  await ada.page.getByLabel('Due').fill('2001-02-03T04:05');
  await ada.page.getByRole('button', { name: 'Save' }).click();
  const column = (tab: Tab, name: string) => tab.page.getByRole('region', { name }).getByRole('listitem', { name: 'Peel the carrots' });
  await column(other, 'To do').getByText('Grace Hopper').waitFor();
  await other.page.getByRole('button', { name: 'More: Peel the carrots' }).click();
  await other.page.getByRole('menuitem', { name: 'Start' }).click();
  await column(ada, 'In progress').waitFor();
  await ada.page.getByRole('button', { name: 'More: Peel the carrots' }).click();
  await ada.page.getByRole('menuitem', { name: 'Mark as done' }).click();
  await column(other, 'Done').waitFor();
  await other.page.getByRole('button', { name: 'More: Peel the carrots' }).click();
  await other.page.getByRole('menuitem', { name: 'Remove' }).click();
  for (const tab of [ada, other]) {
    await tab.page.getByText('No tasks yet').waitFor();
  }
});

test('a message is forwarded to another room with the name of its author', async () => {
  const admin = await flow.hub.signIn('admin');
  const grace = await flow.hub.addUser(admin, 'grace', 'Grace Hopper');
  const room = await flow.hub.createRoom(admin, 'Kitchen', [grace]);
  await flow.hub.createRoom(admin, 'Garden', []);
  await flow.hub.call(grace, 'POST', `/api/rooms/${room}/messages`, { content: 'We are out of carrots' });
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  await tab.enter('Kitchen');
  await tab.message('We are out of carrots').hover();
  await tab.page.getByRole('button', { name: 'More', exact: true }).click();
  await tab.page.getByRole('menuitem', { name: 'Forward' }).click();
  await tab.page.getByRole('searchbox', { name: 'Search rooms' }).fill('gard');
  await tab.page.getByRole('dialog').getByRole('button', { name: 'Garden' }).click();
  await tab.page.getByRole('heading', { name: 'Garden', level: 1 }).waitFor();
  await tab.message(/Forwarded from Grace Hopper[\s\S]*We are out of carrots/).waitFor();
});
