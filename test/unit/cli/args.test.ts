import { expect, test } from 'bun:test'
import { parseArgs } from '../../../src/cli/args'
import { commands } from '../../../src/cli/commands'
import { help } from '../../../src/cli/help'
import { version } from '../../../src/cli/version'

test('positionals, options and switches are told apart', () => {
  expect(parseArgs(['explain', 'req_1', '--why-not', 'box', '--url=http://h:1/?a=b', '--json'])).toMatchObject({
    kind: 'run',
    command: 'explain',
    args: { positionals: ['req_1'], options: { 'why-not': 'box', url: 'http://h:1/?a=b', json: true } },
  })
})

test('after -- everything is a positional', () => {
  expect(parseArgs(['pause', '--', '--odd'])).toMatchObject({
    kind: 'run',
    args: { positionals: ['--odd'], options: {} },
  })
})

test.each([
  [['explan', 'last'], "unknown command 'explan', did you mean 'explain'?"],
  [['stat'], "unknown command 'stat': 'fleet help' lists what there is"],
  [['frobnicate'], "unknown command 'frobnicate': 'fleet help' lists what there is"],
  [['help', 'statsu'], "unknown command 'statsu', did you mean 'status'?"],
  [['status', '--jsno'], "unknown option '--jsno' of 'status', did you mean '--json'?"],
  [['status', '-j'], "unknown option '-j' of 'status'"],
  [['status', '--constructor'], "unknown option '--constructor' of 'status'"],
  [['--wat'], "unknown option '--wat'"],
  [['status', '--json=yes'], "option '--json' takes no value"],
  [['status', '--url'], "option '--url' needs a value: --url URL"],
  [['status', '--url='], "option '--url' needs a value: --url URL"],
  [['explain'], "'explain' needs ID|last"],
  [['pause'], "'pause' needs NODE"],
  [['explain', 'a', 'b'], "too many arguments for 'explain': fleet explain ID|last"],
  [['status', 'x'], "too many arguments for 'status': fleet status"],
])('%p is wrong usage', (argv, message) => {
  expect(parseArgs(argv)).toEqual({ kind: 'usage', message })
})

test.each([
  [[], { kind: 'none' }],
  [['help'], { kind: 'help' }],
  [['--help'], { kind: 'help' }],
  [['help', 'drain'], { kind: 'help', command: 'drain' }],
  [['explain', '-h'], { kind: 'help', command: 'explain' }],
])('%p asks for help, or nothing', (argv, parsed) => {
  expect(parseArgs(argv)).toEqual(parsed as ReturnType<typeof parseArgs>)
})

test.each(['version', '--version', '-v'])('%s tells the build', (argument) => {
  expect(parseArgs([argument])).toMatchObject({ kind: 'run', command: 'version' })
})

test('help lists every command, and every option of a command, within 80 columns', () => {
  for (const command of Object.keys(commands) as (keyof typeof commands)[]) {
    const text = help(command)
    expect(help()).toContain(`fleet ${command}`)
    for (const option of Object.keys(commands[command].options)) expect(text).toContain(`--${option}`)
    for (const line of `${help()}${text}`.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  }
})

test('the version is one line, or one document', () => {
  const build = { version: '1.2.3', commit: 'abc', platform: 'linux-x64', runtime: 'bun 1.4.4' }
  const printed: string[] = []
  const io = { out: (text: string) => printed.push(text) }

  expect(version({ positionals: [], options: {} }, io, build)).toBe(0)
  version({ positionals: [], options: { json: true } }, io, build)

  expect(printed[0]).toBe('fleet 1.2.3 (abc) linux-x64 bun 1.4.4\n')
  expect(JSON.parse(printed[1] ?? '')).toEqual(build)
})
