const dayMs = 86_400_000

const pad = (value: number, width: number): string => String(value).padStart(width, '0')

/** Days since the epoch to a date of the Gregorian calendar, counted in years that begin in March. */
const civil = (days: number): { year: number; month: number; day: number } => {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153)
  const day = dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day }
}

/** RFC 3339 in UTC with milliseconds, from ms since the epoch. Pure: `Date` is not used in this folder. */
export const rfc3339 = (ms: number): string => {
  const whole = Math.floor(ms)
  const days = Math.floor(whole / dayMs)
  const rest = whole - days * dayMs
  const { year, month, day } = civil(days)
  const time = [Math.floor(rest / 3_600_000), Math.floor(rest / 60_000) % 60, Math.floor(rest / 1_000) % 60]
  const clock = time.map((part) => pad(part, 2)).join(':')
  return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}T${clock}.${pad(rest % 1_000, 3)}Z`
}

const nanosecondsPerMs = 1e6

/** Integer nanoseconds, at least one: clients divide by them, and Ollama leaves out zeros. */
export const nanoseconds = (ms: number): number => Math.max(1, Math.round(ms * nanosecondsPerMs))
