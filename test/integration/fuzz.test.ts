import { fuzzTests } from '../support/fuzz/suite'

fuzzTests(Number(Bun.env.FLEET_FUZZ_COUNT ?? 10_000), Number(Bun.env.FLEET_FUZZ_SEED ?? 1))
