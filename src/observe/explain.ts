import type { Estimate } from '../domain/facts'
import type { Decision, Ranked, Verdict } from '../domain/placement'
import type { Attempt, DecisionRecord, Phase, Round } from '../domain/record'
import { recordModel, recordNode } from '../domain/record-keys'
import { because, isPlacing, retriedFrom } from './because'
import { bestFirst, isChosen, numberText, rankText } from './ranking'
import { counted, duration, enumerate, needHave } from './words'

/** One line of the story, with the time at which it happened. */
interface Moment {
  readonly atMs: number
  readonly lines: readonly string[]
}

const TIME_WIDTH = 9
const NAME_WIDTH = 11
const INDENT = ' '.repeat(TIME_WIDTH + 4)

/**
 * The record as text for a terminal: what was asked and what came of it, why, then in order of time each placement
 * with all its candidates, each phase, each failure and the end. Lines end with a newline; no colours.
 */
export const renderExplain = (record: DecisionRecord): string => {
  const moments = [
    // At the same time the failure comes first: it is why there was another placement.
    ...record.failures.map((attempt) => momentOfFailure(attempt, record)),
    ...record.rounds.map(momentOfRound),
    ...record.phases.filter(({ name }) => name !== 'placing').map((phase) => momentOfPhase(phase, record)),
  ].sort((a, b) => a.atMs - b.atMs)
  return [...head(record), '', ...moments.flatMap(({ lines }) => lines), end(record)]
    .map((line) => `${line}\n`)
    .join('')
}

const head = (record: DecisionRecord): readonly string[] => {
  const { id, asked, outcome } = record
  const { code, sentence } = because(record)
  const model = recordModel(record)
  const node = recordNode(record)
  const what = model === asked.model ? asked.model : `${asked.model} -> ${model}`
  const how = outcome ? `${outcome.status} in ${duration(outcome.totalMs)}` : 'running'
  const from = `${asked.operation}, ${asked.stream ? 'streamed' : 'not streamed'}`
  return [
    [id, what, node === undefined ? undefined : `on ${node}`, how, `(${code})`, from].filter(Boolean).join('   '),
    `  because  ${sentence}`,
  ]
}

const line = (atMs: number, name: string, text: string): string =>
  `  ${`${(atMs / 1000).toFixed(2)} s`.padEnd(TIME_WIDTH)}${name.padEnd(NAME_WIDTH)}${text}`.trimEnd()

const momentOfRound = (round: Round): Moment => {
  const { atMs, policy, cause, nodes, more, decision, repeated, estimate } = round
  const rest = more ? more.ranked + Object.values(more.eliminated).reduce((sum, count) => sum + count, 0) : 0
  const title = [
    `${policy}, ${counted(nodes.length + rest, 'candidate')}`,
    cause === 'arrival' ? '' : ` (${cause})`,
    ` -> ${decisionText(decision)}`,
    estimate ? `, the answer expected in ${estimateText(estimate)}` : '',
    repeated ? `, the same ${counted(repeated, 'time')} more` : '',
  ].join('')
  return { atMs, lines: [line(atMs, 'placing', title), ...candidateLines(round), ...moreLines(more)] }
}

const decisionText = ({ kind, node, model, evicts, reason }: Decision): string => {
  const where = node === undefined ? '' : ` ${model ?? ''} on ${node}`
  const dropping = evicts && evicts.length > 0 ? `, dropping ${enumerate(evicts)}` : ''
  // Of a wait or a hold the code says no more than the word, and contradicts it of a wait.
  return `${kind}${where}${dropping}${reason === 'held' ? '' : ` (${reason})`}`
}

const candidateLines = ({ nodes, decision }: Round): readonly string[] => {
  const ranked = bestFirst(nodes, decision)
  const eliminated = nodes.filter((verdict) => verdict.verdict === 'eliminated')
  const all: readonly Verdict[] = [...ranked, ...eliminated]
  const severalModels = new Set(all.map(({ model }) => model)).size > 1
  const nameOf = ({ node, model }: Verdict): string => (severalModels ? `${node} ${model}` : node)
  const nameWidth = Math.max(0, ...all.map((verdict) => nameOf(verdict).length))
  const rankWidth = Math.max(1, ...ranked.map(({ rank }) => rankText(rank).length))
  return all.map((verdict) => {
    const chosen = verdict.verdict === 'ranked' && isChosen(verdict, decision)
    const rank = verdict.verdict === 'ranked' ? rankText(verdict.rank) : '-'
    const why =
      verdict.verdict === 'ranked' ? termsText(verdict) : [verdict.reason, needHave(verdict)].filter(Boolean).join(': ')
    return `${INDENT}${chosen ? '* ' : '  '}${nameOf(verdict).padEnd(nameWidth)}  ${rank.padStart(rankWidth)}  ${why}`.trimEnd()
  })
}

const termsText = ({ terms, tie }: Ranked): string => {
  const parts = Object.entries(terms).map(
    ([name, value]) => `${name} ${typeof value === 'number' ? numberText(value) : value}`,
  )
  return [...parts, ...(tie ? [`tie ${tie}`] : [])].join('  ')
}

const moreLines = (more: Round['more']): readonly string[] => {
  if (!more) return []
  const parts = [
    ...(more.ranked > 0 ? [`${more.ranked} ranked`] : []),
    ...Object.entries(more.eliminated).map(([reason, count]) => `${count} ${reason}`),
  ]
  return [`${INDENT}  and ${enumerate(parts)}`]
}

const momentOfPhase = (phase: Phase, record: DecisionRecord): Moment => {
  const { name, node, fromMs, toMs, estimate } = phase
  const parts = [
    node,
    toMs === undefined ? 'until now' : `for ${duration(toMs - fromMs)}`,
    estimate && `estimate ${estimateText(estimate)}`,
    phaseDetail(name, record),
  ]
  return { atMs: fromMs, lines: [line(fromMs, name, parts.filter(Boolean).join(', '))] }
}

const estimateText = ({ valueMs, basis, samples }: Estimate): string =>
  `${duration(valueMs)} (${basis}${samples > 0 ? ` of ${samples}` : ''})`

const phaseDetail = (name: Phase['name'], { asked, outcome }: DecisionRecord): string | undefined => {
  if (name === 'prefill') {
    const isCounted = outcome?.tokensIn !== undefined || asked.promptTokens.basis === 'counted'
    const tokens = `${isCounted ? '' : 'about '}${counted(outcome?.tokensIn ?? asked.promptTokens.value, 'token')}`
    // What comes whole does not show where the prompt ends and the answer begins.
    return asked.stream || outcome?.tokensOut === undefined
      ? tokens
      : `${tokens}, and writing the answer, which came whole`
  }
  if (name !== 'generating' || outcome?.tokensOut === undefined) return undefined
  const rate =
    outcome.tokensPerSecond === undefined
      ? ''
      : ` at ${numberText(Math.round(outcome.tokensPerSecond * 10) / 10)} tok/s`
  const exhausted = outcome.thinkingExhausted ? ', all of them spent on thinking' : ''
  return `${counted(outcome.tokensOut, 'token')}${rate}${exhausted}`
}

/** A node that could not be reached may have been asked again, once it was back. */
const whatNext = ({ node, atMs, retried }: Attempt, { rounds }: DecisionRecord): string => {
  if (!retried) return ', not tried again'
  const next = rounds.find((round) => round.atMs >= atMs && isPlacing(round.decision))
  return next?.decision.node === node ? ', tried again there' : ', tried elsewhere'
}

const momentOfFailure = (attempt: Attempt, record: DecisionRecord): Moment => {
  const { node, model, atMs, class: kind, message, status, bytes, elapsedMs } = attempt
  const what = status === undefined ? kind : `${kind} ${status}`
  const got = bytes > 0 ? `, ${counted(bytes, 'byte')} had arrived` : ''
  const next = whatNext(attempt, record)
  return {
    atMs,
    lines: [line(atMs, 'failed', `${model} on ${node} after ${duration(elapsedMs)}: ${what}: ${message}${got}${next}`)],
  }
}

const ENDS: Readonly<Record<string, string>> = {
  completed: 'done',
  client_disconnected: 'left',
}

const end = (record: DecisionRecord): string => {
  const { outcome } = record
  if (!outcome) return `  ${''.padEnd(TIME_WIDTH)}running    ${record.phases.at(-1)?.name ?? 'placing'}`
  const { end: ending, totalMs, status, code, message, phase, retries, bytes, toolCallsRepaired } = outcome
  const parts = [
    String(status),
    ...(ending === 'completed' ? [] : [`while ${phase}`, ...(code ? [code] : []), ...(message ? [message] : [])]),
    counted(bytes, 'byte'),
    ...(toolCallsRepaired ? [`${counted(toolCallsRepaired, 'tool call')} repaired`] : []),
    ...(retries > 0 || retriedFrom(record) ? [`${retries} ${retries === 1 ? 'retry' : 'retries'}`] : []),
  ]
  return line(totalMs, ENDS[ending] ?? ending, parts.join(', '))
}
