/** Random tests print the seed with which they failed; `PARLOR_TEST_SEED` has them take it again. */
import fc from 'fast-check';

const seed = process.env['PARLOR_TEST_SEED'];

// Seeds of the hub's own tests may be larger than those of fast-check.
if (seed !== undefined && seed !== '') fc.configureGlobal({ seed: Number(BigInt.asIntN(32, BigInt(seed))) });
