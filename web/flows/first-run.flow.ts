import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub } from './hub';
import { fillIn, firstAdmin, setUpFlow } from './flow-context';

const flow = setUpFlow(Hub.fresh);

test('the setup link leads to the first streamed answer', async () => {
  const tab = await firstAdmin(flow);
  const { page } = tab;
  await tab.send('@guide slow');
  await tab.message(/I count to sixty[\s\S]*1 2 /).waitFor();
  await page.getByRole('button', { name: 'Stop guide' }).first().click();
  await tab.message('Stopped').waitFor();
  await page.getByRole('button', { name: 'Stop guide' }).waitFor({ state: 'detached' });
});

test('a user stays signed in across page loads until they sign out', async () => {
  const tab = await firstAdmin(flow);
  const { page } = tab;
  await page.goto(flow.hub.url);
  await page.waitForURL('**/app/rooms/welcome');
  await page.getByRole('button', { name: 'Ada Lovelace' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
});

test('a used link and a wrong password show an error', async () => {
  const link = await flow.hub.setupLink();
  await firstAdmin(flow);
  const other = await Tab.open(flow.browser, `${flow.hub.url}/register${new URL(link).hash}`);
  await fillIn(other);
  await other.page.getByRole('button', { name: 'Create account' }).click();
  await other.page.getByText('This link has expired or was already used').waitFor();
  await other.page.getByRole('button', { name: 'Go to sign-in' }).click();
  await other.page.getByLabel('Username').fill('ada');
  await other.page.getByLabel('Password', { exact: true }).fill('wrong');
  await other.page.getByRole('button', { name: 'Sign in' }).click();
  expect(await other.page.getByRole('alert').textContent()).not.toBe('');
});
