import { openRouter } from '../../src/router'
import { testConfig, testNode } from '../support/host'

/** A router as a process of its own, so that its memory can be told from that of the test. Argument: a llama-server. */
const [, , url = ''] = process.argv
const config = testConfig({
  nodes: [testNode('a', { url })] as never,
  limits: { streamIdleTimeoutMs: 1_500 },
  log: { level: 'silent' },
})

const router = await openRouter(config, {}, { version: '0.0.0', commit: 'test' })
console.log(router.url)
