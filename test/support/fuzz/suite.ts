import { expect, test } from 'bun:test'
import { type Protocol, protocols } from '../protocols'
import { type Fuzzed, fuzzAnswers, fuzzBodies } from './run'

/** So many bodies are sent for each valid one to nodes that garble their answers. */
const BODIES_FOR_ONE_ANSWER = 10
const LIMIT_MS = 120_000

const shareOf = ({ dialect }: Protocol, count: number): number =>
  Math.ceil(count / protocols.filter((protocol) => protocol.dialect === dialect).length)

const expectWhole = ({ found, ends, left, internal }: Fuzzed): void => {
  expect(found).toEqual([])
  expect({ left, internal }).toEqual({ left: {}, internal: 0 })
  // Without requests that run, nothing was tried.
  expect(ends.completed).toBeGreaterThan(0)
}

/** `count` bodies for each dialect, shared by its endpoints. A run repeats from its seed: body n is made from the sum of both. */
export const fuzzTests = (count: number, seed: number): void => {
  for (const protocol of protocols) {
    const bodies = shareOf(protocol, count)
    const answers = Math.ceil(bodies / BODIES_FOR_ONE_ANSWER)

    test(
      `${protocol.name}: ${bodies} mutated bodies, seed ${seed}: every answer is of the protocol, nothing is left`,
      async () => expectWhole(await fuzzBodies(protocol, bodies, seed)),
      LIMIT_MS,
    )

    test(
      `${protocol.name}: ${answers} mutated answers of nodes, seed ${seed}: none breaks the router, nothing is left`,
      async () => expectWhole(await fuzzAnswers(protocol, answers, seed)),
      LIMIT_MS,
    )
  }
}
