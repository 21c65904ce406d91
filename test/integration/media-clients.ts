/** One POST of JSON and what came back. */
export const post = async (
  url: string,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly headers: Headers; readonly json: Record<string, unknown> }> => {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, json: JSON.parse(await response.text()) }
}

/** A form with one file in it, as SDKs send it. */
export const sendForm = (
  url: string,
  path: string,
  fields: Readonly<Record<string, string>>,
  files: Readonly<Record<string, File>>,
  options: RequestInit = {},
): Promise<Response> => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  for (const [name, file] of Object.entries(files)) form.append(name, file, file.name)
  return fetch(`${url}${path}`, { method: 'POST', body: form, ...options })
}

export const wav = (name = 'talk.wav'): File => new File([Buffer.from('RIFF0000WAVE')], name, { type: 'audio/x-wav' })
