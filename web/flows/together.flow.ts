import { expect, test } from 'vitest';
import { Tab } from './browser';
import { AGENT, inCompany } from './company';
import { Gateway } from './gateway';

const here = inCompany();

test('two people and an agent talk, and see each other do so', async () => {
  const { gateway, ada, grace } = here;
  await ada.say('Is there any coffee left?');
  await grace.said('Is there any coffee left?').waitFor();
  await grace.field.pressSequentially('One cup');
  await ada.page.getByText('Grace Hopper is typing').waitFor();
  await grace.field.press('Enter');
  await ada.said('One cup').waitFor();
  await ada.page.getByText('Seen by').waitFor({ state: 'detached' });
  // By the name one signs in with, too.
  await ada.say('@grace it is yours');
  await grace.said('it is yours').locator('.mention-me').waitFor();

  await ada.say('@Coder make some more');
  const turn = await gateway.next('server:send_to_agent');
  gateway.chunk(turn, 'r1', 'thinking', 'Where is the pot?');
  await grace.said('Thinking').waitFor();
  gateway.chunk(turn, 'r1', 'tool_use', '{"cups":2}', { toolName: 'Brew', toolId: 't1' });
  await grace.said(/Brew/).waitFor();
  gateway.chunk(turn, 'r1', 'tool_result', 'done', { toolName: 'Brew', toolId: 't1' });
  const answer = 'Coffee is **ready**.\n\n```ts\nconst cups = 2;\n```';
  gateway.chunk(turn, 'r1', 'text', answer);
  gateway.complete(turn, 'r1', answer);
  for (const tab of [ada, grace]) {
    await tab.said('Coffee is ready.').waitFor();
    await tab.said('1 tool').waitFor();
    await tab.said('const cups = 2;').locator('.code-keyword', { hasText: 'const' }).waitFor();
    expect(await tab.said('Coffee is ready.').count()).toBe(1);
  }
});

test('what one does to a message is seen by the other: answers, reactions, edits, pins, deletion', async () => {
  const { ada, grace } = here;
  await ada.say('First');
  await grace.said('First').hover();
  await grace.page.getByRole('button', { name: 'React' }).click();
  await grace.page.getByRole('menuitem', { name: '🎉' }).click();
  await ada.said('First').getByRole('button', { name: /🎉 from/ }).waitFor();
  await grace.said('First').hover();
  await grace.page.getByRole('button', { name: 'Reply', exact: true }).click();
  await grace.say('Second');
  await ada.said('Second').getByText('First').waitFor();
  await ada.field.fill('Not yet finished');
  await ada.said('First').first().hover();
  await ada.page.getByRole('button', { name: 'More', exact: true }).click();
  await ada.page.getByRole('menuitem', { name: 'Edit' }).click();
  expect(await ada.field.inputValue()).toBe('First');
  await ada.say('Third');
  await expect.poll(() => ada.field.inputValue()).toBe('Not yet finished');
  await grace.said(/Third[\s\S]*edited/).first().waitFor();
  await ada.said('Third').first().hover();
  await ada.page.getByRole('button', { name: 'More', exact: true }).click();
  await ada.page.getByRole('menuitem', { name: 'Delete' }).click();
  await ada.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await grace.said('a message that is not here any more').waitFor();
});

test('of two people who answer an agent one wins, and both see who', async () => {
  const { gateway, ada, grace } = here;
  await ada.say('@Coder tidy up');
  const turn = await gateway.next('server:send_to_agent');
  gateway.ask(turn, 'p1', 'Bash', { command: 'rm -r crumbs' });
  const cards = [ada, grace].map((tab) => tab.page.getByRole('region', { name: 'Coder wants to use Bash' }));
  for (const card of cards) await card.getByText('"command": "rm -r crumbs"').waitFor();
  // Both are found before either is pressed: the answer of one takes the other's button away.
  const buttons = await Promise.all(cards.map((card) => card.getByRole('button', { name: 'Allow once' }).elementHandle()));
  await Promise.all(buttons.map((button) => button?.evaluate((element) => (element as HTMLElement).click())));
  for (const card of cards) await card.getByText(/Allowed by (Ada Lovelace|Grace Hopper)/).waitFor();
  const [first, second] = await Promise.all(cards.map((card) => card.getByRole('status').textContent()));
  expect(first).toBe(second);
  expect((await gateway.next('server:permission_response'))['decision']).toBe('allow');
  gateway.ask(turn, 'p2', 'Bash', { command: 'rm -r cups' });
  const again = grace.page.getByRole('region', { name: 'Coder wants to use Bash' }).filter({ hasText: 'cups' });
  await again.getByRole('button', { name: 'Deny' }).click();
  await again.getByLabel('Why not? (optional)').fill('We need them');
  await again.getByRole('button', { name: 'Deny' }).click();
  expect(await gateway.next('server:permission_response')).toMatchObject({ decision: 'deny' });
  await ada.page.getByText('Denied by Grace Hopper: We need them').waitFor();
});

test('a reply goes on over a restart of the hub, and what was written meanwhile is sent once', async () => {
  const { hub, admin, gateway, ada, grace } = here;
  await ada.say('@Coder count');
  const turn = await gateway.next('server:send_to_agent');
  gateway.chunk(turn, 'r1', 'text', 'One, two, ');
  await ada.said('One, two,').waitFor();
  await hub.kill();
  await ada.page.getByText('Offline. Reconnecting…').waitFor();
  await ada.say('Are you still there?');
  await grace.say('I am!');
  // What waits to be sent survives that its page is left.
  const address = grace.page.url();
  await grace.page.goto('about:blank');
  await hub.start();
  await ada.page.getByText('Offline. Reconnecting…').waitFor({ state: 'detached' });
  await grace.page.goto(address);
  await grace.said('Are you still there?').waitFor();
  await ada.said('I am!').waitFor();
  const back = (here.gateway = await Gateway.connect(hub, admin, AGENT));
  back.chunk(turn, 'r1', 'text', 'One, two, three.');
  back.complete(turn, 'r1', 'One, two, three.');
  for (const tab of [ada, grace]) {
    await tab.said('One, two, three.').waitFor();
    expect(await tab.said(/One, two/).count()).toBe(1);
    expect(await tab.said('Are you still there?').count()).toBe(1);
    expect(await tab.said('I am!').count()).toBe(1);
  }
});

test('who opens a room late sees what an agent says from its beginning, and stops it', async () => {
  const { hub, browser, gateway, ada } = here;
  await ada.say('@Coder count');
  const turn = await gateway.next('server:send_to_agent');
  gateway.chunk(turn, 'r1', 'text', 'One. ');
  await gateway.settled();
  const late = await Tab.signedIn(browser, hub, 'grace');
  await late.enter('Kitchen');
  await late.said('One.').waitFor();
  gateway.chunk(turn, 'r1', 'text', 'Two.');
  await late.said('One. Two.').waitFor();
  await late.page.getByRole('button', { name: 'Stop Coder' }).click();
  await gateway.next('server:stop_agent');
  for (const tab of [ada, late]) {
    await tab.said(/One\. Two\.[\s\S]*Stopped/).waitFor();
    await tab.page.getByRole('button', { name: 'Stop Coder' }).waitFor({ state: 'detached' });
  }
});

test('why an agent did not answer is told', async () => {
  const { ada, grace } = here;
  await ada.page.getByRole('button', { name: 'Freeze agents' }).click();
  await grace.page.getByText('Agents are silent here: Ada Lovelace froze the room.').waitFor();
  await ada.say('@Coder hello?');
  await ada.said('hello?').hover();
  await ada.page.getByRole('button', { name: 'More', exact: true }).click();
  await ada.page.getByRole('menuitem', { name: 'Why did nobody answer?' }).click();
  await ada.page.getByRole('dialog').getByText('was not asked').waitFor();
  await ada.page.keyboard.press('Escape');
  await ada.page.getByRole('button', { name: 'Let agents speak' }).click();
  await grace.page.getByText('Agents are silent here').waitFor({ state: 'detached' });
});
