import { describe, expect, test } from 'bun:test'
import { createNames, type Known } from '../../../src/catalog/names'
import type { AliasConfig, Config } from '../../../src/domain/config'
import type { Capability } from '../../../src/domain/job'
import { testJob } from '../../support/host'

type Written = Readonly<Record<string, string | readonly string[] | { models: string[]; strict: true }>>

const aliasesOf = (written: Written): AliasConfig[] =>
  Object.entries(written).map(([name, of]) => {
    if (typeof of === 'string') return { name, models: [of], acrossKinds: true }
    return 'strict' in of ? { name, models: of.models, acrossKinds: false } : { name, models: of, acrossKinds: true }
  })

interface World {
  readonly sameModel?: Config['sameModel']
  readonly listed?: readonly string[]
  readonly can?: Readonly<Record<string, readonly Capability[]>>
  readonly former?: Readonly<Record<string, string>>
}

const namesOf = (written: Written, { sameModel = [], listed = [], can = {}, former = {} }: World = {}) => {
  const known: Known = {
    isListed: (key) => listed.includes(key),
    capabilities: (key) => can[key] ?? [],
    current: (name) => former[name] ?? name,
  }
  return createNames({ aliases: aliasesOf(written), sameModel }, known)
}

describe('a name stands for', () => {
  const names = namesOf(
    {
      smart: 'qwen3:32b',
      fast: ['qwen3:4b', 'gemma3:4b'],
      best: ['smart', 'fast', 'QWEN3:32B'],
      'gpt-*': 'smart',
      'gpt-oss*': 'fast',
      '*:latest': 'qwen3:4b',
    },
    { listed: ['gpt-oss:20b', 'smart'] },
  )

  test.each([
    ['smart', ['qwen3:32b']],
    ['SMART:latest', ['qwen3:32b']],
    ['fast', ['qwen3:4b', 'gemma3:4b']],
    ['best', ['qwen3:32b', 'qwen3:4b', 'gemma3:4b']],
    ['gpt-4o:mini', ['qwen3:32b']],
    ['GPT-4O:mini', ['qwen3:32b']],
    ['gpt-oss:120b', ['qwen3:4b', 'gemma3:4b']],
    ['gpt-oss:20b', ['gpt-oss:20b']],
    ['gpt-4o', ['qwen3:4b']],
    ['anything', ['qwen3:4b']],
    ['anything:7b', ['anything:7b']],
    ['host:5000/anything', ['qwen3:4b']],
  ])('%s: %p', (asked, models) => {
    expect(names.chainOf(asked).models).toEqual(models)
  })

  test('an alias goes before a model of its name that some node lists, a model before a pattern', () => {
    expect(names.chainOf('smart').models).toEqual(['qwen3:32b'])
    expect(names.chainOf('gpt-oss:20b').models).toEqual(['gpt-oss:20b'])
  })
})

test('all names of one model are its id, also in a chain', () => {
  const names = namesOf(
    { fast: ['Org/M-GGUF', 'small', 'm:8b'] },
    { sameModel: [{ id: 'm', names: ['org/m-gguf', 'm:8b'] }], listed: ['m'] },
  )

  expect(names.chainOf('M:8B').models).toEqual(['m'])
  expect(names.chainOf('m').models).toEqual(['m'])
  expect(names.chainOf('fast').models).toEqual(['m', 'small'])
  expect(names.sameModel('ORG/m-gguf')).toBe('m')
  expect(names.sameModel('other')).toBeUndefined()
})

test('a model that was called otherwise is still understood', () => {
  const names = namesOf({}, { former: { 'm:8b-2': 'm:8b' } })

  expect(names.chainOf('m:8b-2').models).toEqual(['m:8b'])
})

test('aliases that lead back to themselves end', () => {
  const names = namesOf({ a: ['b', 'm'], b: 'a' })

  expect(names.chainOf('a').models).toEqual(['m'])
})

describe('a job', () => {
  test('keeps what the client wrote; the stand-ins that the client names come after the chain, each model once', () => {
    const names = namesOf({ smart: ['big', 'small'], other: 'tiny' })
    const job = testJob({ asked: 'smart', fallback: ['small', 'other', 'last'] })

    const resolved = names.resolve(job)

    expect(resolved.asked).toBe('smart')
    expect(resolved.models).toEqual(['big', 'small', 'tiny', 'last'])
    expect(resolved.standInNeeds).toBeUndefined()
  })

  test('of an alias that stays within a kind wants stand-ins that can do what the first can', () => {
    const can: World['can'] = { eyes: ['completion', 'vision', 'thinking'] }
    const names = namesOf({ see: { models: ['eyes', 'text'], strict: true } }, { can })

    expect(names.resolve(testJob({ asked: 'see' })).standInNeeds).toEqual(['completion', 'vision'])
    expect(names.resolve(testJob({ asked: 'eyes' })).standInNeeds).toBeUndefined()
  })
})
