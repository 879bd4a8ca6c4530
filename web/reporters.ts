/** How Vitest reports: for people, and as JSON with the duration of each test into the file that `XTASK_REPORT` names. */
const file = process.env['XTASK_REPORT'];

export const reporters: (string | [string, { outputFile: string }])[] = [
  'default',
  ...(file === undefined || file === '' ? [] : [['json', { outputFile: file }] as [string, { outputFile: string }]]),
];
