import { describe, expect, test } from 'bun:test'
import { numberedWords } from '../../../src/sim/fake/question'
import {
  askChat,
  askOllama,
  chatText,
  fastModel,
  ollamaText,
  readJson,
  slowModel,
  until,
  withFakes,
} from '../../support/fakes'

describe('answers', () => {
  test('are numbered words that belong to their prompt, whatever the API', () =>
    withFakes(
      [{ kind: 'ollama' }, { kind: 'llamacpp' }, { kind: 'llamacpp-router' }, { kind: 'openai' }],
      async (...fakes) => {
        const words = numberedWords('tell me', 16).join('')

        for (const fake of fakes) {
          const answer = await askChat(fake, { prompt: 'tell me' })
          expect(chatText(await answer.text())).toBe(words)
        }
        const [ollama] = fakes
        expect(ollamaText(await (await askOllama(ollama!, { prompt: 'tell me' })).text())).toBe(words)
        expect(words).toStartWith('tok1.')
        expect(words.split(' ')).toHaveLength(16)
      },
    ))

  test('stop at the token limit of the request and say so', () =>
    withFakes([{ kind: 'ollama', answerTokens: 10 }], async (fake) => {
      const openai = await readJson(askChat(fake!, { stream: false, more: { max_tokens: 3 } }))
      const ollama = await readJson(askOllama(fake!, { stream: false, more: { options: { num_predict: 3 } } }))

      expect(openai.choices[0]).toMatchObject({
        finish_reason: 'length',
        message: { content: numberedWords('hi', 3).join('') },
      })
      expect(ollama).toMatchObject({ done_reason: 'length', eval_count: 3 })
    }))

  test('take as long as prefill and decode rates say, faster with a time scale', () =>
    withFakes(
      [
        {
          kind: 'openai',
          models: [fastModel('m', { prefillPerSecond: 100, decodePerSecond: 100 })],
          answerTokens: 40,
          timeScale: 4,
        },
      ],
      async (fake) => {
        const started = performance.now()
        const answer = await readJson(askChat(fake!, { stream: false, prompt: 'x'.repeat(160) }))
        const tookMs = performance.now() - started

        // 40 tokens of prompt and 40 of answer at 100/s are 800 ms, at four times the speed 200 ms.
        expect(tookMs).toBeGreaterThan(180)
        expect(tookMs).toBeLessThan(700)
        expect(answer.usage).toMatchObject({ prompt_tokens: 40, completion_tokens: 40 })
      },
    ))
})

describe('slots', () => {
  test('never run more requests than there are, in order of arrival', () =>
    withFakes([{ kind: 'llamacpp', slots: 2, answerTokens: 40 }], async (fake) => {
      const prompts = Array.from({ length: 12 }, (_, index) => `prompt ${index}`)
      const bodies = await Promise.all(
        prompts.map(async (prompt, index) => {
          await Bun.sleep(index)
          return (await askChat(fake!, { prompt })).text()
        }),
      )

      expect(fake!.peak()).toBe(2)
      expect(fake!.peak('m')).toBe(2)
      expect(bodies.map(chatText)).toEqual(prompts.map((prompt) => numberedWords(prompt, 40).join('')))
      const starts = fake!.log.map((entry) => entry.events.find((each) => each.event === 'started')!.at)
      expect(starts).toEqual([...starts].sort((a, b) => a - b))
    }))

  test('are freed at once when the client leaves', () =>
    withFakes([{ kind: 'openai', slots: 1, models: [slowModel()], answerTokens: 1000 }], async (fake) => {
      const control = new AbortController()
      const answer = await askChat(fake!, { signal: control.signal })
      await answer.body!.getReader().read()
      const next = askChat(fake!, { more: { max_tokens: 1 } })
      await until(() => fake!.log.length === 2)
      expect(fake!.running()).toBe(1)

      control.abort()
      await (await next).text()

      expect(fake!.log[0]!.events.map((each) => each.event)).toEqual([
        'received',
        'started',
        'first_token',
        'client_closed',
        'cancelled',
      ])
      expect(fake!.running()).toBe(0)
    }))

  test('collapse above a number of jobs: each much slower than alone', () =>
    withFakes(
      [
        {
          kind: 'llamacpp',
          slots: 8,
          collapseAbove: 2,
          models: [fastModel('m', { decodePerSecond: 400 })],
          answerTokens: 40,
        },
      ],
      async (fake) => {
        const speeds = async (count: number): Promise<number[]> => {
          const answers = Array.from({ length: count }, () => readJson(askChat(fake!, { stream: false })))
          return (await Promise.all(answers)).map((answer) => answer.timings.predicted_per_second)
        }

        for (const speed of await speeds(2)) expect(speed).toBeCloseTo(400, 0)
        const crowded = await speeds(6)
        for (const speed of crowded) expect(speed).toBeLessThan(260)
        expect(new Set(crowded.map(Math.round)).size).toBeGreaterThan(1)
      },
    ))

  test('contention slows every running request', () =>
    withFakes(
      [{ kind: 'openai', contention: 1, models: [fastModel('m', { decodePerSecond: 400 })], answerTokens: 40 }],
      async (fake) => {
        const started = performance.now()
        await Promise.all([askChat(fake!), askChat(fake!), askChat(fake!)].map(async (answer) => (await answer).text()))

        expect(performance.now() - started).toBeGreaterThan(280)
      },
    ))
})

describe('memory', () => {
  const models = ['a', 'b', 'c'].map((name) => fastModel(name, { sizeGb: 4 }))

  test('loads on demand and evicts the idle model used longest ago', () =>
    withFakes([{ kind: 'ollama', memoryGb: 9, models }], async (fake) => {
      for (const model of ['a', 'b', 'a', 'c']) await (await askOllama(fake!, { model })).text()

      expect(fake!.resident()).toEqual(['a', 'c'])
      expect(fake!.loads.map((load) => [load.model, load.evicted])).toEqual([
        ['a', []],
        ['b', []],
        ['c', ['b']],
      ])
    }))

  test('a load waits for a busy model to become idle', () =>
    withFakes([{ kind: 'ollama', memoryGb: 5, models, answerTokens: 400, resident: ['a'] }], async (fake) => {
      const first = (await askOllama(fake!, { model: 'a' })).text()
      await until(() => fake!.running('a') === 1)
      const second = await (await askOllama(fake!, { model: 'b', more: { options: { num_predict: 2 } } })).text()

      expect(ollamaText(await first)).toBe(numberedWords('hi', 400).join(''))
      expect(ollamaText(second)).toBe(numberedWords('hi', 2).join(''))
      expect(fake!.interrupted()).toBe(0)
    }))

  test('a model larger than the memory is refused', () =>
    withFakes([{ kind: 'ollama', memoryGb: 3, models }], async (fake) => {
      const answer = await askOllama(fake!, { model: 'a' })

      expect(answer.status).toBe(500)
      expect((await readJson(answer)).error).toContain('more system memory')
    }))

  test('windows count: the cache of all slots is part of what a model needs', () =>
    withFakes(
      [
        {
          kind: 'ollama',
          slots: 2,
          memoryGb: 6,
          models: [fastModel('m', { sizeGb: 4, contextTokens: 8000, kvGbPerThousandTokens: 0.2 })],
        },
      ],
      async (fake) => {
        expect((await askOllama(fake!, { more: { options: { num_ctx: 8000 } } })).status).toBe(500)
        expect((await askOllama(fake!, { more: { options: { num_ctx: 4000 } } })).status).toBe(200)
      },
    ))

  test('several models loading at the same time load one after the other, each once', () =>
    withFakes([{ kind: 'ollama', models, slots: 4 }], async (fake) => {
      const asked = ['a', 'b', 'a', 'c', 'b', 'a']
      await Promise.all(asked.map(async (model) => (await askOllama(fake!, { model })).text()))

      expect(fake!.loads.map((load) => load.model).sort()).toEqual(['a', 'b', 'c'])
      expect(fake!.resident().sort()).toEqual(['a', 'b', 'c'])
    }))
})
