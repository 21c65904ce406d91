/** Cuts a text at `max` characters, with `…` as the last one when something was lost. */
export const bounded = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max - 1)}…`)

export const boundedList = (texts: readonly string[], maxItems: number, maxLength: number): readonly string[] =>
  texts.length <= maxItems && texts.every((text) => text.length <= maxLength)
    ? texts
    : texts.slice(0, maxItems).map((text) => bounded(text, maxLength))

/** Appends; a full list loses its middle, since how a thing began and how it ended explain it best. */
export const pushBounded = <T>(list: T[], item: T, max: number): void => {
  if (list.length >= max) list.splice(max >> 1, 1)
  list.push(item)
}
