import { expect, test } from 'vitest';
import { Tab } from './browser';
import { AGENT, setUpSharedRoom } from './shared-room';
import { Gateway } from './gateway';

const shared = setUpSharedRoom();

test('two users and an agent exchange messages live', async () => {
  const { gateway, ada, grace } = shared;
  await ada.send('Is there any coffee left?');
  await grace.message('Is there any coffee left?').waitFor();
  await grace.field.pressSequentially('One cup');
  await ada.page.getByText('Grace Hopper is typing').waitFor();
  await grace.field.press('Enter');
  await ada.message('One cup').waitFor();
  await ada.page.getByText('Seen by').waitFor({ state: 'detached' });
  // A mention by username counts, too.
  await ada.send('@grace it is yours');
  await grace.message('it is yours').locator('.mention-me').waitFor();

  await ada.send('@Coder make some more');
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'thinking', 'Where is the pot?');
  await grace.message('Thinking').waitFor();
  gateway.chunk(run, 'r1', 'tool_use', '{"cups":2}', { toolName: 'Brew', toolId: 't1' });
  await grace.message(/Brew/).waitFor();
  gateway.chunk(run, 'r1', 'tool_result', 'done', { toolName: 'Brew', toolId: 't1' });
  const answer = 'Coffee is **ready**.\n\n```ts\nconst cups = 2;\n```';
  gateway.chunk(run, 'r1', 'text', answer);
  gateway.complete(run, 'r1', answer);
  for (const tab of [ada, grace]) {
    await tab.message('Coffee is ready.').waitFor();
    await tab.message('1 tool').waitFor();
    await tab.message('const cups = 2;').locator('.code-keyword', { hasText: 'const' }).waitFor();
    expect(await tab.message('Coffee is ready.').count()).toBe(1);
  }
});

test('replies, reactions, edits and deletions are shown to the other user', async () => {
  const { ada, grace } = shared;
  await ada.send('First');
  await grace.message('First').hover();
  await grace.page.getByRole('button', { name: 'Add reaction' }).click();
  await grace.page.getByRole('menuitem', { name: '🎉' }).click();
  await ada.message('First').getByRole('button', { name: /reacted with 🎉/ }).waitFor();
  await grace.message('First').hover();
  await grace.page.getByRole('button', { name: 'Reply', exact: true }).click();
  await grace.send('Second');
  await ada.message('Second').getByText('First').waitFor();
  await ada.field.fill('Not yet finished');
  await ada.message('First').first().hover();
  await ada.page.getByRole('button', { name: 'More', exact: true }).click();
  await ada.page.getByRole('menuitem', { name: 'Edit' }).click();
  expect(await ada.field.inputValue()).toBe('First');
  await ada.send('Third');
  await expect.poll(() => ada.field.inputValue()).toBe('Not yet finished');
  await grace.message(/Third[\s\S]*edited/).first().waitFor();
  await ada.message('Third').first().hover();
  await ada.page.getByRole('button', { name: 'More', exact: true }).click();
  await ada.page.getByRole('menuitem', { name: 'Delete' }).click();
  await ada.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await grace.message('Original message not available').waitFor();
});

test('the first of two decisions on an approval wins, and both users see it', async () => {
  const { gateway, ada, grace } = shared;
  await ada.send('@Coder tidy up');
  const run = await gateway.next('server:send_to_agent');
  gateway.requestPermission(run, 'p1', 'Bash', { command: 'rm -r crumbs' });
  const cards = [ada, grace].map((tab) => tab.page.getByRole('region', { name: 'Coder wants to use Bash' }));
  for (const card of cards) await card.getByText('"command": "rm -r crumbs"').waitFor();
  // Finds both buttons before it clicks one, because a decision removes the button of the other user.
  const buttons = await Promise.all(cards.map((card) => card.getByRole('button', { name: 'Allow once' }).elementHandle()));
  await Promise.all(buttons.map((button) => button?.evaluate((element) => (element as HTMLElement).click())));
  for (const card of cards) await card.getByText(/Allowed by (Ada Lovelace|Grace Hopper)/).waitFor();
  const [first, second] = await Promise.all(cards.map((card) => card.getByRole('status').textContent()));
  expect(first).toBe(second);
  expect((await gateway.next('server:permission_response'))['decision']).toBe('allow');
  gateway.requestPermission(run, 'p2', 'Bash', { command: 'rm -r cups' });
  const again = grace.page.getByRole('region', { name: 'Coder wants to use Bash' }).filter({ hasText: 'cups' });
  await again.getByRole('button', { name: 'Deny' }).click();
  await again.getByLabel('Reason (optional)').fill('We need them');
  await again.getByRole('button', { name: 'Deny' }).click();
  expect(await gateway.next('server:permission_response')).toMatchObject({ decision: 'deny' });
  await ada.page.getByText('Denied by Grace Hopper: We need them').waitFor();
});

test('a streaming reply continues after a hub restart, and messages written offline are sent once', async () => {
  const { hub, admin, gateway, ada, grace } = shared;
  await ada.send('@Coder count');
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'text', 'One, two, ');
  await ada.message('One, two,').waitFor();
  await hub.kill();
  await ada.page.getByText('Offline. Reconnecting…').waitFor();
  await ada.send('Are you still there?');
  await grace.send('I am!');
  // Unsent messages survive a page load.
  const address = grace.page.url();
  await grace.page.goto('about:blank');
  await hub.start();
  await ada.page.getByText('Offline. Reconnecting…').waitFor({ state: 'detached' });
  await grace.page.goto(address);
  await grace.message('Are you still there?').waitFor();
  await ada.message('I am!').waitFor();
  const reconnected = (shared.gateway = await Gateway.connect(hub, admin, AGENT));
  reconnected.chunk(run, 'r1', 'text', 'One, two, three.');
  reconnected.complete(run, 'r1', 'One, two, three.');
  for (const tab of [ada, grace]) {
    await tab.message('One, two, three.').waitFor();
    expect(await tab.message(/One, two/).count()).toBe(1);
    expect(await tab.message('Are you still there?').count()).toBe(1);
    expect(await tab.message('I am!').count()).toBe(1);
  }
});

test('a late joiner sees a streaming reply from its beginning and can stop it', async () => {
  const { hub, browser, gateway, ada } = shared;
  await ada.send('@Coder count');
  const run = await gateway.next('server:send_to_agent');
  gateway.chunk(run, 'r1', 'text', 'One. ');
  await gateway.synced();
  const late = await Tab.signedIn(browser, hub, 'grace');
  await late.enter('Kitchen');
  await late.message('One.').waitFor();
  gateway.chunk(run, 'r1', 'text', 'Two.');
  await late.message('One. Two.').waitFor();
  await late.page.getByRole('button', { name: 'Stop Coder' }).click();
  await gateway.next('server:stop_agent');
  for (const tab of [ada, late]) {
    await tab.message(/One\. Two\.[\s\S]*Stopped/).waitFor();
    await tab.page.getByRole('button', { name: 'Stop Coder' }).waitFor({ state: 'detached' });
  }
});

test('a message shows why an agent did not answer', async () => {
  const { ada, grace } = shared;
  await ada.page.getByRole('button', { name: 'Freeze agents', exact: true }).click();
  await grace.page.getByText('Agents in this room are frozen by Ada Lovelace.').waitFor();
  await ada.send('@Coder hello?');
  await ada.message('hello?').hover();
  await ada.page.getByRole('button', { name: 'More', exact: true }).click();
  await ada.page.getByRole('menuitem', { name: 'Why did no agent answer?' }).click();
  await ada.page.getByRole('dialog').getByText('did not run').waitFor();
  await ada.page.keyboard.press('Escape');
  await ada.page.getByRole('button', { name: 'Unfreeze agents' }).click();
  await grace.page.getByText('Agents in this room are frozen').waitFor({ state: 'detached' });
});
