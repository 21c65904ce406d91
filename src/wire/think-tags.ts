/** Takes `<think>…</think>` out of answers of nodes that have no parser of their own for it. */
import type { ReplyEvent } from './canonical'

const openTag = '<think>'
const closeTag = '</think>'

/** Length of the longest end of `text` that could be the beginning of `tag`. */
const partialLength = (text: string, tag: string): number => {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--)
    if (tag.startsWith(text.slice(-length))) return length
  return 0
}

/** Fed event by event; text at the start of an answer is held only while it could still be a tag. */
export const createThinkSplitter = (): ((event: ReplyEvent) => ReplyEvent[]) => {
  let state: 'start' | 'thinking' | 'between' | 'answer' = 'start'
  let held = ''

  const text = (said: string): ReplyEvent[] => (said === '' ? [] : [{ type: 'text', text: said }])
  const reasoning = (said: string): ReplyEvent[] => (said === '' ? [] : [{ type: 'reasoning', text: said }])

  const thinking = (said: string): ReplyEvent[] => {
    state = 'thinking'
    const end = said.indexOf(closeTag)
    if (end >= 0) return [...reasoning(said.slice(0, end).trimEnd()), ...between(said.slice(end + closeTag.length))]
    const sure = said.length - partialLength(said, closeTag)
    held = said.slice(sure)
    return reasoning(said.slice(0, sure))
  }

  /** The line breaks between the closing tag and the answer belong to neither. */
  const between = (said: string): ReplyEvent[] => {
    const rest = said.trimStart()
    state = rest === '' ? 'between' : 'answer'
    return text(rest)
  }

  const start = (said: string): ReplyEvent[] => {
    const trimmed = said.trimStart()
    if (trimmed.startsWith(openTag)) return thinking(trimmed.slice(openTag.length).trimStart())
    if (openTag.startsWith(trimmed)) {
      held = said
      return []
    }
    // Some templates put the opening tag into the prompt, so that the answer has only the closing one.
    const close = said.indexOf(closeTag)
    if (close >= 0 && !said.slice(0, close).includes(openTag)) return thinking(said)
    state = 'answer'
    return text(said)
  }

  const steps = { start, thinking, between, answer: text }

  return (event) => {
    if (event.type === 'text' && event.logprobs === undefined) {
      const said = held + event.text
      held = ''
      return steps[state](said)
    }
    const rest = state === 'thinking' ? reasoning(held) : text(held)
    held = ''
    // A node that tells reasoning apart itself means its text as it stands.
    if (event.type === 'reasoning') state = 'answer'
    return [...rest, event]
  }
}
