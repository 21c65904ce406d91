/** Label values in the order of the family's label names; an absent one is empty. */
export type Labels = readonly (string | undefined)[]

/** What a family keeps for each combination of label values, in the order in which they came. */
export interface LabelTree<T> {
  /** The one for these values, made when there is none. */
  at(labels: Labels): T
  values(): readonly T[]
  deleteWhere(isGone: (value: T, labels: Labels) => boolean): void
}

interface Branch<T> {
  readonly branches: Map<string, Branch<T>>
  leaf: T | undefined
}

interface Child<T> {
  readonly labels: Labels
  readonly value: T
}

/** A table a label: values that are joined to one key would have to be joined anew for each observation. */
export const createLabelTree = <T>(depth: number, make: (labels: Labels) => T): LabelTree<T> => {
  let root: Branch<T> = { branches: new Map(), leaf: undefined }
  let children: Child<T>[] = []
  let values: T[] = []

  const branchAt = (labels: Labels): Branch<T> => {
    let branch = root
    for (let i = 0; i < depth; i++) {
      const label = labels[i] ?? ''
      let next = branch.branches.get(label)
      if (next === undefined) {
        next = { branches: new Map(), leaf: undefined }
        branch.branches.set(label, next)
      }
      branch = next
    }
    return branch
  }

  const add = (labels: Labels, branch: Branch<T>, value: T): T => {
    branch.leaf = value
    children.push({ labels, value })
    values.push(value)
    return value
  }

  return {
    at: (labels) => {
      const branch = branchAt(labels)
      return branch.leaf ?? add(labels, branch, make(labels))
    },
    values: () => values,
    deleteWhere: (isGone) => {
      const kept = children.filter(({ value, labels }) => !isGone(value, labels))
      if (kept.length === children.length) return
      root = { branches: new Map(), leaf: undefined }
      children = []
      values = []
      for (const { labels, value } of kept) add(labels, branchAt(labels), value)
    },
  }
}
