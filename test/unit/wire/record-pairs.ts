/** Writes anew what comes of every exchange: `bun test/unit/wire/record-pairs.ts`. Read the difference before you keep it. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Client, Node } from './pairs'
import { answerAt, pairsFolder, play, readPair, records, requestFor, writeOutcome } from './pairs'
import type { Section } from './sections'
import { writeSections } from './sections'

for (const file of await readdir(pairsFolder)) {
  const [, client, node] = /^(.+)-(.+)\.txt$/.exec(file) ?? []
  const pair = { client: client as Client, node: node as Node }
  const entries = new Map<string, readonly Section[]>()
  for (const [scenario, [asked]] of await readPair(pair)) {
    if (!asked) throw new Error(`${file}: "${scenario}" asks nothing`)
    const ask = JSON.parse(asked.body)
    const answer = await answerAt(requestFor(pair, ask).request.path, scenario)
    entries.set(scenario, [asked, ...writeOutcome(await play(pair, ask, answer, records(answer)))])
  }
  await Bun.write(join(pairsFolder, file), writeSections(entries))
}
