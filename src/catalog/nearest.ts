import { editDistance } from '../domain/nearest'

/** A longer name is no typing error, and comparing takes the product of both lengths. */
const maxLength = 128

/** Up to three names that are close enough to have been meant, nearest first; also those that contain the word. */
export const nearestNames = (asked: string, names: Iterable<string>): readonly string[] => {
  if (asked.length > maxLength) return []
  const wanted = asked.toLowerCase()
  const limit = Math.max(2, Math.floor(wanted.length / 3))
  const close: { name: string; distance: number }[] = []
  for (const name of names) {
    const distance = name.includes(wanted) || wanted.includes(name) ? 1 : editDistance(wanted, name.toLowerCase())
    if (distance <= limit) close.push({ name, distance })
  }
  return close
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, 3)
    .map(({ name }) => name)
}
