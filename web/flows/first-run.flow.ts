import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub } from './hub';
import { fillIn, firstAdmin, onStage } from './stage';

const stage = onStage(Hub.fresh);

test('the setup link leads to the first streamed answer', async () => {
  const tab = await firstAdmin(stage);
  const { page } = tab;
  await tab.say('@guide slow');
  await tab.said(/I count to sixty[\s\S]*1 2 /).waitFor();
  await page.getByRole('button', { name: 'Stop guide' }).first().click();
  await tab.said('Stopped').waitFor();
  await page.getByRole('button', { name: 'Stop guide' }).waitFor({ state: 'detached' });
});

test('who comes back is still signed in, where they were; who signs out is not', async () => {
  const tab = await firstAdmin(stage);
  const { page } = tab;
  await page.goto(stage.hub.url);
  await page.waitForURL('**/app/rooms/welcome');
  await page.getByRole('button', { name: 'Ada Lovelace' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
});

test('a wrong password and a link that was used are told in words', async () => {
  const link = await stage.hub.setupLink();
  await firstAdmin(stage);
  const other = await Tab.open(stage.browser, `${stage.hub.url}/register${new URL(link).hash}`);
  await fillIn(other);
  await other.page.getByRole('button', { name: 'Join' }).click();
  await other.page.getByText('This link is not good any more').waitFor();
  await other.page.getByRole('button', { name: 'Go to sign-in' }).click();
  await other.page.getByLabel('Name for signing in').fill('ada');
  await other.page.getByLabel('Password', { exact: true }).fill('wrong');
  await other.page.getByRole('button', { name: 'Sign in' }).click();
  expect(await other.page.getByRole('alert').textContent()).not.toBe('');
});
