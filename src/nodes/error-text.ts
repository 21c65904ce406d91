const MAX_LENGTH = 200

export const isHtml = (text: string): boolean => /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(text)

/** The sentence inside an engine's error answer, on one line and short; empty when there is none worth showing. */
export const errorText = (text: string): string => {
  if (isHtml(text)) return ''
  const said = sentence(parse(text))
  return said.replace(/\s+/g, ' ').trim().slice(0, MAX_LENGTH)
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Engines write `{error:{message}}`, `{error:"…"}`, `{message}`, `{detail:"…"}` or `{detail:{msg}}`. */
const sentence = (body: unknown): string => {
  if (typeof body === 'string') return body
  if (typeof body !== 'object' || body === null) return ''
  const { error, message, detail, msg } = body as Record<string, unknown>
  for (const part of [error, message, detail, msg]) {
    const said = sentence(part)
    if (said) return said
  }
  return ''
}
