import type { DecisionRecord } from '../domain/record'
import { because } from '../observe/because'
import { renderExplain } from '../observe/explain'
import { whyNot } from '../observe/why-not'
import type { Args } from './args'
import { withClient } from './client'
import { exitCode, type ExitCode } from './exit-codes'
import type { Io } from './io'
import { printable } from './printable'

const asJson = (record: DecisionRecord, node: string | undefined): string => {
  const document = { record, because: because(record), ...(node === undefined ? {} : { whyNot: whyNot(record, node) }) }
  return `${JSON.stringify(document, null, 2)}\n`
}

const asText = (record: DecisionRecord, node: string | undefined): string => {
  const text = node === undefined ? renderExplain(record) : `why not ${node}?  ${whyNot(record, node).sentence}`
  return `${text.trimEnd().split('\n').map(printable).join('\n')}\n`
}

/** `fleet explain ID|last [--why-not NODE] [--json]`: one request, from arrival to its end. */
export const explain = (args: Args, io: Io): Promise<ExitCode> =>
  withClient(args, io, async (client) => {
    const record = await client.get<DecisionRecord>(
      `/api/v1/requests/${encodeURIComponent(args.positionals[0] ?? 'last')}`,
    )
    const whyNotNode = args.options['why-not']
    const node = typeof whyNotNode === 'string' ? whyNotNode : undefined
    io.out(args.options.json ? asJson(record, node) : asText(record, node))
    return exitCode.done
  })
