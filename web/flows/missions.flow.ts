import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Gateway } from './gateway';
import { Hub } from './hub';
import { setUpFlow } from './flow-context';

const flow = setUpFlow(Hub.withAdmin);

test('a mission is set, shown to all members, edited and ended', async () => {
  const { hub, browser } = flow;
  const admin = await hub.signIn('admin');
  const grace = await hub.addUser(admin, 'grace', 'Grace Hopper');
  const room = await hub.createRoom(admin, 'Kitchen', [grace]);
  const gateway = await Gateway.connect(hub, admin, { id: 'coder', name: 'Coder' });
  await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: 'coder', memberType: 'agent' });
  const tab = await Tab.signedIn(browser, hub, 'admin');
  const { page } = tab;
  await page.getByRole('link', { name: 'Missions' }).click();
  await page.getByText('No mission').waitFor();
  await page.getByRole('list', { name: 'Set a mission for' }).getByRole('link', { name: 'Kitchen' }).click();
  await page.getByRole('button', { name: 'Set mission' }).click();
  await page.getByLabel('Goal').fill('Keep the soup warm');
  await page.getByRole('checkbox', { name: 'Coder' }).waitFor();
  await page.getByLabel('Idle prompt').fill('Is it warm?');
  await page.getByLabel('Idle time (seconds)').fill('3600');
  await page.getByRole('button', { name: 'Save mission' }).click();
  const active = page.getByRole('region', { name: 'Active' });
  await active.getByText('Keep the soup warm').waitFor();
  await active.getByText('after 3600 s idle').waitFor();
  await active.getByText(/\d+ of \d+ prompts used/).waitFor();

  const other = await Tab.signedIn(browser, hub, 'grace');
  await other.page.goto(`${hub.url}/app/missions`);
  await other.page.getByRole('list', { name: 'Active' }).getByRole('link', { name: /Keep the soup warm/ }).click();
  await other.page.getByRole('region', { name: 'Active' }).getByText('Is it warm?').waitFor();
  expect(await other.page.getByRole('button', { name: 'End mission' }).count()).toBe(0);

  await active.getByRole('button', { name: 'Edit mission' }).click();
  await page.getByLabel('Goal').fill('Keep the soup hot');
  await page.getByRole('button', { name: 'Save mission' }).click();
  await active.getByText('Keep the soup hot').waitFor();
  await page.getByRole('list', { name: 'Past missions' }).getByText('Keep the soup warm').waitFor();
  await active.getByRole('button', { name: 'End mission' }).click();
  await page.getByText('No mission').waitFor();
  await page.getByRole('list', { name: 'Past missions' }).getByText('Keep the soup hot').waitFor();
  await page.getByRole('button', { name: 'Back' }).click();
  await page.getByRole('heading', { name: 'Kitchen', level: 1 }).waitFor();
  gateway.close();
});
