import { describe, expect, test } from 'bun:test'
import { dialects } from '../../../src/wire'
import { readForm } from '../../../src/wire/multipart'
import { pictureFromBase64, pictureFromUrl } from '../../../src/wire/pictures'

/** What takes the time of a blink may run in the event loop; the square of these lengths would take minutes. */
const length = 400_000
const quickly = (run: () => unknown): void => {
  const startedAt = performance.now()
  run()
  expect(performance.now() - startedAt).toBeLessThan(500)
}

describe('text that is made to be searched for ever is not', () => {
  test('a picture of padding', () => {
    const padding = `${'='.repeat(length)}A`

    quickly(() => expect(() => pictureFromUrl(`data:image/png;base64,${padding}`, 'image')).toThrow('not valid base64'))
    quickly(() => expect(() => pictureFromBase64(padding, 'image')).toThrow('not valid base64'))
    expect(pictureFromBase64('iVBORw0KGg==', 'image')).toMatchObject({ base64: 'iVBORw0KGg==' })
    expect(pictureFromBase64('iVBORw0KGg', 'image')).toMatchObject({ base64: 'iVBORw0KGg==' })
  })

  test('a user id of beginnings', () => {
    const messages = dialects.flatMap(({ inference }) => inference).find(({ path }) => path === '/v1/messages')
    const decode = (user_id: string) =>
      messages?.decode({
        id: 'req_1',
        at: 0,
        path: '/v1/messages',
        headers: new Headers(),
        body: Buffer.from(
          JSON.stringify({
            model: 'm',
            max_tokens: 1,
            metadata: { user_id },
            messages: [{ role: 'user', content: 'x' }],
          }),
        ),
        context: { priority: 'normal', tags: [] },
      }).job.session

    quickly(() => expect(decode(`${'_session_'.repeat(length / 9)}!`)).toStartWith('user_'))
    expect(decode('user_1_account_2_session_abc-3')).toBe('abc-3')
    expect(decode(`x_session_${'a'.repeat(900)}`)?.length).toBeLessThanOrEqual(256)
  })

  test.each([
    ['of spaces', `Content-Type: a${' '.repeat(length)}b`],
    ['of quotes', `X: ${' name="'.repeat(length / 7)}`],
  ])('the head of a part %s', (_, line) => {
    const form = Buffer.from(`--b\r\nContent-Disposition: form-data; name="file"\r\n${line}\r\n\r\nx\r\n--b--\r\n`)

    quickly(() => expect(() => readForm(form, 'multipart/form-data; boundary=b')).toThrow('too long'))
  })

  test('a thousand heads of spaces', () => {
    const head = `--b\r\nContent-Disposition: form-data; name="f"\r\nContent-Type: a${' '.repeat(7_000)}b\r\n\r\nx\r\n`
    const form = Buffer.from(`${head.repeat(500)}--b--\r\n`)

    quickly(() => expect(readForm(form, 'multipart/form-data; boundary=b').parts).toHaveLength(500))
  })
})
