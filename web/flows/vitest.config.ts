import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Screenshots and benchmarks assert nothing and run only on demand.
    include: [process.env['ONLY'] ?? 'flows/**/*.flow.ts'],
    testTimeout: 240_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // Each file has its own browser, each test its own hub. Flows wait more than they compute, so that three
    // workers keep two cores busy.
    maxWorkers: 3,
    // Files of one worker share loaded modules, which is faster. The modules keep no state between files.
    isolate: false,
    setupFiles: ['flows/setup.ts'],
  },
});
