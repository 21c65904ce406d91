import { afterEach } from 'bun:test'

/** For what the tests of a file start: each stops after the test that handed it over. */
export const stopAfterEach = (): ((stop: () => void) => void) => {
  const stops: (() => void)[] = []
  afterEach(() => {
    for (const stop of stops.splice(0)) stop()
  })
  return (stop) => void stops.push(stop)
}
