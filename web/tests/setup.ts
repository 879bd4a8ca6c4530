/** Sets the seed of property tests from `PARLOR_TEST_SEED`. A failed test prints its seed. */
import fc from 'fast-check';

const seed = process.env['PARLOR_TEST_SEED'];

// The hub's tests use 64-bit seeds, fast-check 32-bit ones.
if (seed !== undefined && seed !== '') fc.configureGlobal({ seed: Number(BigInt.asIntN(32, BigInt(seed))) });
