import { failure, type Place, type Problem } from './problem'

/** One error for each name that several entries of the list at `path` share; it points at all of them. */
export const duplicateNames = (
  entries: readonly { readonly name: string }[],
  path: string,
  plural: string,
  places: ReadonlyMap<string, Place>,
): readonly Problem[] =>
  [...Map.groupBy(entries.keys(), (index) => entries[index]?.name)].flatMap(([name, indexes]) => {
    if (name === undefined || indexes.length < 2) return []
    const [at, ...also] = indexes
      .map((index) => places.get(`${path}[${index}].name`))
      .filter((place) => place !== undefined)
    const many = indexes.length === 2 ? 'two' : String(indexes.length)
    return [
      failure('duplicate_name', `${path}[${indexes[1]}].name`, `${many} ${plural} are named "${name}"`, at, { also }),
    ]
  })
