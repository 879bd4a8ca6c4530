import { afterAll, beforeAll, expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub } from './hub';
import { Model } from './model';
import { setUpFlow } from './flow-context';

let model: Model;
beforeAll(async () => {
  model = await Model.start(['The answer ', 'is ', '**42**.']);
});
afterAll(() => model.stop());

const flow = setUpFlow(() => Hub.withAdmin({ PARLOR_ALLOWED_ENDPOINTS: model.address }));

test('a model is added, tested, added to a room and answers; then it is paused and removed', async () => {
  await flow.hub.createRoom(await flow.hub.signIn('admin'), 'Kitchen', []);
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  const { page } = tab;
  await page.goto(`${flow.hub.url}/app/agents`);
  await page.getByRole('button', { name: 'Add model' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name', { exact: true }).fill('Oracle');
  await form.getByLabel('Model', { exact: true }).fill('small');
  await form.getByLabel('Base URL').fill('http://127.0.0.1:1/v1');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByRole('alert').waitFor();
  await form.getByLabel('Base URL').fill(`http://${model.address}/v1`);
  await form.getByLabel('API key').fill('sk-secret');
  await form.getByRole('button', { name: 'Save' }).click();
  const row = page.getByRole('list', { name: 'Models on this hub' }).getByRole('listitem', { name: 'Oracle' });
  await row.getByText('active').waitFor();
  const choose = async (name: string) => {
    await page.getByRole('button', { name: 'More: Oracle' }).click();
    await page.getByRole('menuitem', { name }).click();
  };
  await choose('Test connection');
  await row.getByText('Connection works.').waitFor();
  await choose('Edit model');
  expect(await page.getByRole('dialog').getByLabel('API key').inputValue()).toBe('');
  expect(await page.content()).not.toContain('sk-secret');
  await page.getByRole('dialog').getByLabel('System prompt').fill('Be brief.');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });

  await row.getByRole('link', { name: /Oracle/ }).click();
  await page.getByRole('button', { name: 'Add to room' }).click();
  await page.getByRole('heading', { name: 'Kitchen', level: 1 }).waitFor();
  await tab.send('@Oracle what is the answer?');
  await tab.message('The answer is 42.').waitFor();
  await page.getByRole('link', { name: 'Agents' }).click();
  await choose('Pause');
  await row.getByText('paused').waitFor();
  await choose('Remove agent');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove agent' }).click();
  await row.waitFor({ state: 'detached' });
});
