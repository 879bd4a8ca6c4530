import { expect, test } from 'vitest';
import { Tab } from './browser';
import { Hub } from './hub';
import { setUpFlow } from './flow-context';

/** One red pixel. */
const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
  'base64',
);

const flow = setUpFlow(Hub.withAdmin);

test('files are attached, previewed and downloaded', async () => {
  await flow.hub.createRoom(await flow.hub.signIn('admin'), 'Kitchen', []);
  const tab = await Tab.signedIn(flow.browser, flow.hub, 'admin');
  await tab.enter('Kitchen');
  const picker = tab.page.locator('input[type=file]');
  await picker.setInputFiles([
    { name: 'dot.png', mimeType: 'image/png', buffer: PICTURE },
    { name: 'menu.txt', mimeType: 'text/plain', buffer: Buffer.from('soup') },
  ]);
  await tab.page.getByRole('button', { name: 'Remove menu.txt' }).waitFor();
  await send(tab, 'Lunch');
  const message = tab.message('Lunch');
  await message.getByRole('img', { name: 'dot.png' }).waitFor();
  const saving = tab.page.waitForEvent('download');
  await message.getByRole('button', { name: /menu\.txt/ }).click();
  expect((await saving).suggestedFilename()).toBe('menu.txt');
  // Files are also attached by paste and by drag and drop.
  for (const [kind, target, name] of [['paste', 'textarea', 'pasted.txt'], ['drop', 'main', 'dropped.txt']] as const) {
    const data = await tab.page.evaluateHandle((given) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(['soup'], given, { type: 'text/plain' }));
      return transfer;
    }, name);
    if (kind === 'paste') {
      await tab.page.locator(target).evaluate((field, clipboardData) => {
        field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
      }, data);
    } else {
      await tab.page.locator(target).dispatchEvent('dragenter', { dataTransfer: data });
      await tab.page.getByText('Drop files to attach them').waitFor();
      await tab.page.locator(target).dispatchEvent('drop', { dataTransfer: data });
    }
    await tab.page.getByRole('button', { name: `Remove ${name}` }).waitFor();
  }
  await send(tab, 'More lunch');
  await tab.message('More lunch').getByRole('button', { name: /dropped\.txt/ }).waitFor();
  await tab.message('More lunch').getByRole('button', { name: /pasted\.txt/ }).waitFor();
  await picker.setInputFiles([{ name: 'page.html', mimeType: 'text/html', buffer: Buffer.from('<html><script>') }]);
  await tab.page.getByText(/^page\.html: /).waitFor();
});

/** Sends with the button, which is disabled until all files are uploaded. Until then Enter does nothing. */
async function send(tab: Tab, text: string): Promise<void> {
  await tab.field.fill(text);
  await tab.page.getByRole('button', { name: 'Send' }).click();
}
