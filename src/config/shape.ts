/** What a text means, beyond being text. */
export type Format =
  | 'duration'
  | 'keep_alive'
  | 'listen'
  | 'base_url'
  | 'name'
  | 'variable'
  | 'key_hash'
  | 'text'
  | 'path'

interface Common {
  readonly default?: unknown
  /** Cannot be set by a variable. */
  readonly fileOnly?: boolean
}

export interface NumberShape extends Common {
  readonly type: 'integer' | 'number'
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum: number
}

export interface TextShape extends Common {
  readonly type: 'string'
  readonly format: Format
  readonly minDuration?: string
  readonly maxDuration?: string
}

export interface WordShape extends Common {
  readonly type: 'string'
  readonly enum: readonly string[]
  /** As in `"x" is not a <noun>`; its first word says what a word of a later version is. */
  readonly noun: string
  readonly later?: readonly string[]
}

export interface BooleanShape extends Common {
  readonly type: 'boolean'
}

export type LeafShape = NumberShape | TextShape | WordShape | BooleanShape

export interface ListShape extends Common {
  readonly type: 'array'
  readonly items: LeafShape | TableShape
}

export interface TableShape extends Common {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  /** Shapes of the values under keys that are the user's to choose, one for each form that a value may have. */
  readonly additionalProperties?: false | { readonly anyOf: readonly Shape[] }
  /** Keys of later versions. */
  readonly later: readonly string[]
}

/** The shapes of a table's values whose keys the user chooses; none for a table of known keys. */
export const freeShapes = ({ additionalProperties }: TableShape): readonly Shape[] =>
  additionalProperties ? additionalProperties.anyOf : []

/** How the reader sees a schema. */
export type Shape = LeafShape | ListShape | TableShape
