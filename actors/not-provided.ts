import { fromPromise } from 'xstate'

/** The loud default for work that a machine only names: the wiring must provide it. */
export const notProvided = <O, I>(name: string) =>
  fromPromise<O, I>(async () => {
    throw new Error(`'${name}' is not provided`)
  })
