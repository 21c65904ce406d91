import type { NodeDescription, NodeKind } from '../../src/domain/node'
import type { MediaServer } from './media-servers'
import { type Bench, type Setup, withRouter } from './router'

const placeholder = { kind: 'openai', models: [] } as const

/** A real router in front of these servers, named a, b, c, …, and of nothing else. */
export const withMedia = async (
  nodes: readonly (readonly [NodeKind, MediaServer, Partial<NodeDescription>?])[],
  run: (bench: Bench) => Promise<unknown>,
  setup: Setup = {},
): Promise<void> => {
  const describe = (index: number): Partial<NodeDescription> => {
    const [kind = 'openai', server, more] = nodes[index] ?? []
    return { kind, url: server?.url ?? '', ...more }
  }
  try {
    await withRouter(
      nodes.map(() => placeholder),
      { ...setup, describe },
      run,
    )
  } finally {
    for (const [, server] of nodes) server.stop()
  }
}
