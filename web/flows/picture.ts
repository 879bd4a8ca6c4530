/** Takes the screenshot in the README (`npm run picture`): a fresh hub with the cards of the guide. */
import { resolve } from 'node:path';
import { test } from 'vitest';
import { Hub } from './hub';
import { firstAdmin, setUpFlow } from './flow-context';

const flow = setUpFlow(Hub.fresh);

test('takes the screenshot of the README', async () => {
  const options = { colorScheme: 'light', viewport: { width: 1200, height: 860 }, reducedMotion: 'reduce' } as const;
  const tab = await firstAdmin(flow, options);
  const admin = await flow.hub.signIn('ada');
  const grace = await flow.hub.addUser(admin, 'grace', 'Grace Hopper');
  for (const name of ['Release 0.4', 'Kitchen']) {
    const room = await flow.hub.createRoom(admin, name, [grace]);
    await flow.hub.call(grace, 'POST', `/api/rooms/${room}/messages`, { content: `Morning! Anything new in ${name}?` });
  }
  await tab.send('@guide plan');
  await tab.page.getByRole('region', { name: 'Plan' }).getByText('4/4').waitFor();
  await tab.send('@guide permission');
  await tab.page.getByRole('region', { name: /wants to use/ }).waitFor();
  await tab.page.mouse.move(0, 0);
  await tab.page.screenshot({ path: resolve(import.meta.dirname, '../../docs/parlor.png') });
});
