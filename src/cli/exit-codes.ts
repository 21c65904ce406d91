/** What the exit code of every command means. Stable: scripts depend on it. */
export const exitCode = {
  done: 0,
  failed: 1,
  wrongUsage: 2,
  invalidConfig: 3,
  notReachable: 4,
  notAllowed: 5,
  notFound: 6,
  problemsFound: 7,
  timedOut: 8,
} as const

export type ExitCode = (typeof exitCode)[keyof typeof exitCode]
