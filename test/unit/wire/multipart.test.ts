import { describe, expect, test } from 'bun:test'
import { splice } from '../../../src/wire/bytes'
import { fieldOf, filesOf, readForm, setField, writeForm } from '../../../src/wire/multipart'

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1')
const type = 'multipart/form-data; boundary=x'
const part = (head: string, content: string): string =>
  `--x\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`
const text = (body: Uint8Array): string => Buffer.from(body).toString('latin1')

describe('a form', () => {
  const raw = `${part('name="model"', 'm')}${part('name="file"; filename="a \\"b\\".wav"', '\x00\xff--x\r\n--y')}--x--\r\n`
  const form = readForm(bytes(raw), type)

  test('is read without touching its files', () => {
    expect(fieldOf(form, 'model')).toBe('m')
    expect(filesOf(form, 'file')).toMatchObject([{ filename: 'a "b".wav' }])
    const [file] = filesOf(form, 'file')
    expect(text(form.body.subarray(file?.start, file?.end))).toBe('\x00\xff--x\r\n--y')
  })

  test('gets another model, and every other byte stays', () => {
    expect(text(splice(form.body, setField(form, 'model', 'longer')))).toBe(raw.replace('\r\nm\r\n', '\r\nlonger\r\n'))
  })

  test('gets a field that it did not have as its last', () => {
    const more = readForm(splice(form.body, setField(form, 'translate', 'true')), type)
    expect(fieldOf(more, 'translate')).toBe('true')
    expect(more.parts.map(({ name }) => name)).toEqual(['model', 'file', 'translate'])
  })

  test('that is written can be read', () => {
    const written = writeForm('x', [
      { name: 'n', content: bytes('1') },
      { name: 'image', filename: 'i.png', contentType: 'image/png', content: bytes('\x89PNG') },
    ])
    const read = readForm(written, type)
    expect(fieldOf(read, 'n')).toBe('1')
    expect(filesOf(read, 'image')).toMatchObject([{ filename: 'i.png', contentType: 'image/png' }])
  })
})

test.each([
  ['no boundary', 'multipart/form-data', '--x--'],
  ['another type', 'application/json', '{}'],
  ['no part', type, 'nothing'],
  ['half a part', type, '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nbreaks off'],
  ['half a head', type, '--x\r\nContent-Disposition: form-data'],
  ['a part without a name', type, '--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--'],
])('%s is the client’s error', (_name, contentType, body) => {
  expect(() => readForm(bytes(body), contentType)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
})
