import { describe, expect, test } from 'bun:test'
import type { NodeReport } from '../../../src/domain/node'
import { adapterFor } from '../../../src/nodes'
import { Told } from '../../../src/nodes/told'

const report = (more: Partial<NodeReport>): NodeReport => ({
  models: [],
  resident: [],
  canLoad: false,
  canUnload: false,
  ...more,
})

describe('what a node told', () => {
  test('is what its models can do, by any spelling of their names', () => {
    const told = new Told(
      report({
        models: [
          { name: 'Qwen3:latest', capabilities: ['chat'] },
          { name: 'qwen3', capabilities: ['embedding'] },
          { name: 'bare' },
        ],
      }),
    )

    // The first of those that are one model, as everywhere.
    for (const name of ['Qwen3:latest', 'qwen3', 'QWEN3']) expect(told.capabilities(name)).toEqual(['chat'])
    expect(told.capabilities('bare')).toBeUndefined()
    expect(told.capabilities('unknown')).toBeUndefined()
  })

  test('is the dialects of its version, for whatever kind it is taken for', () => {
    const told = new Told(report({ version: 'b9000' }))

    expect(told.native(adapterFor('llamacpp'))).toContain('anthropic')
    expect(told.native(adapterFor('openai'))).toEqual(adapterFor('openai').native)
    expect(told.native(adapterFor('llamacpp'))).toContain('anthropic')
    expect(new Told(report({ version: 'b7000' })).native(adapterFor('llamacpp'))).not.toContain('anthropic')
  })
})
