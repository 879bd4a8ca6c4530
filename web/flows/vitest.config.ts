import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Pictures and measurements are made on demand, for people; they prove nothing.
    include: [process.env['ONLY'] ?? 'flows/**/*.flow.ts'],
    testTimeout: 240_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // Each has a browser and a hub of its own, and machines that build things are busy.
    fileParallelism: false,
  },
});
