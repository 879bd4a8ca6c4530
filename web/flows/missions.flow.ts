import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Gateway } from './gateway';
import { Hub } from './hub';
import { onStage } from './stage';

const stage = onStage(Hub.withAdmin);

test('a mission is set, seen by everybody, changed and ended', async () => {
  const { hub, browser } = stage;
  const admin = await hub.signIn('admin');
  const grace = await hub.addPerson(admin, 'grace', 'Grace Hopper');
  const room = await hub.makeRoom(admin, 'Kitchen', [grace]);
  const gateway = await Gateway.connect(hub, admin, { id: 'coder', name: 'Coder' });
  await hub.call(admin, 'POST', `/api/rooms/${room}/members`, { memberId: 'coder', memberType: 'agent' });
  const tab = await Tab.signedIn(browser, hub, 'admin');
  const { page } = tab;
  await page.getByRole('link', { name: 'Missions' }).click();
  await page.getByText('No mission').waitFor();
  await page.getByRole('list', { name: 'Set one for' }).getByRole('link', { name: 'Kitchen' }).click();
  await page.getByRole('button', { name: 'Set a mission' }).click();
  await page.getByLabel('What they are to work towards').fill('Keep the soup warm');
  await page.getByRole('checkbox', { name: 'Coder' }).waitFor();
  await page.getByLabel('What it is asked when idle').fill('Is it warm?');
  await page.getByLabel('After so many seconds').fill('3600');
  await page.getByRole('button', { name: 'Set the mission' }).click();
  const active = page.getByRole('region', { name: 'Under way' });
  await active.getByText('Keep the soup warm').waitFor();
  await active.getByText('after 3600 s idle').waitFor();
  await active.getByText(/asked \d+ of \d+ times/).waitFor();

  const other = await Tab.signedIn(browser, hub, 'grace');
  await other.page.goto(`${hub.url}/app/missions`);
  await other.page.getByRole('list', { name: 'Under way' }).getByRole('link', { name: /Keep the soup warm/ }).click();
  await other.page.getByRole('region', { name: 'Under way' }).getByText('Is it warm?').waitFor();
  expect(await other.page.getByRole('button', { name: 'End it' }).count()).toBe(0);

  await active.getByRole('button', { name: 'Change it' }).click();
  await page.getByLabel('What they are to work towards').fill('Keep the soup hot');
  await page.getByRole('button', { name: 'Set the mission' }).click();
  await active.getByText('Keep the soup hot').waitFor();
  await page.getByRole('list', { name: 'Before' }).getByText('Keep the soup warm').waitFor();
  await active.getByRole('button', { name: 'End it' }).click();
  await page.getByText('No mission').waitFor();
  await page.getByRole('list', { name: 'Before' }).getByText('Keep the soup hot').waitFor();
  await page.getByRole('button', { name: 'Back' }).click();
  await page.getByRole('heading', { name: 'Kitchen', level: 1 }).waitFor();
  gateway.close();
});
