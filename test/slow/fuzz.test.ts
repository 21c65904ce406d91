import { fuzzTests } from '../support/fuzz/suite'

const COUNT = 100_000
/** A router remembers what happened in it for as long as it is tested, so it is begun anew. */
const AT_ONCE = 10_000

/** Another one each time; the names of the tests tell it. */
const SEED = Number(Bun.env.FLEET_FUZZ_SEED ?? Date.now() % 1_000_000_000)

for (let done = 0; done < COUNT; done += AT_ONCE) fuzzTests(AT_ONCE, SEED + done)
