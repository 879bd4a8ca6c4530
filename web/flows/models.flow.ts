import { afterAll, beforeAll, expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub } from './hub';
import { Model } from './model';
import { onStage } from './stage';

let model: Model;
beforeAll(async () => {
  model = await Model.start(['The answer ', 'is ', '**42**.']);
});
afterAll(() => model.stop());

const stage = onStage(() => Hub.withAdmin({ PARLOR_ALLOWED_ENDPOINTS: model.place }));

test('a model of the hub is added, tried, brought into a room, and answers; then it rests, and goes', async () => {
  await stage.hub.makeRoom(await stage.hub.signIn('admin'), 'Kitchen', []);
  const tab = await Tab.signedIn(stage.browser, stage.hub, 'admin');
  const { page } = tab;
  await page.goto(`${stage.hub.url}/app/agents`);
  await page.getByRole('button', { name: 'Add a model' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('What it is called here').fill('Oracle');
  await form.getByLabel('Model', { exact: true }).fill('small');
  await form.getByLabel('Address of its server').fill('http://127.0.0.1:1/v1');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByRole('alert').waitFor();
  await form.getByLabel('Address of its server').fill(`http://${model.place}/v1`);
  await form.getByLabel('Its key').fill('sk-secret');
  await form.getByRole('button', { name: 'Save' }).click();
  const row = page.getByRole('list', { name: 'Models of this hub' }).getByRole('listitem', { name: 'Oracle' });
  await row.getByText('answers').waitFor();
  const choose = async (name: string) => {
    await page.getByRole('button', { name: 'More: Oracle' }).click();
    await page.getByRole('menuitem', { name }).click();
  };
  await choose('Try it');
  await row.getByText('It answers.').waitFor();
  await choose('Change it');
  expect(await page.getByRole('dialog').getByLabel('Its key').inputValue()).toBe('');
  expect(await page.content()).not.toContain('sk-secret');
  await page.getByRole('dialog').getByLabel('What it is to be').fill('Be brief.');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });

  await row.getByRole('link', { name: /Oracle/ }).click();
  await page.getByRole('button', { name: 'Bring it in' }).click();
  await page.getByRole('heading', { name: 'Kitchen', level: 1 }).waitFor();
  await tab.say('@Oracle what is the answer?');
  await tab.said('The answer is 42.').waitFor();
  await page.getByRole('link', { name: 'Agents' }).click();
  await choose('Let it rest');
  await row.getByText('rests').waitFor();
  await choose('Remove the agent');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove the agent' }).click();
  await row.waitFor({ state: 'detached' });
});
