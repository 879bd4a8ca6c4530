/** Runs before each file, also where files share their modules. */
import { afterEach } from 'vitest';
import { expectNoComplaints } from './browser';

// The hook that is registered first runs last: when all tabs of the test are closed.
afterEach(expectNoComplaints);
