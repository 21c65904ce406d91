/** Tools of a Responses client as the functions that chat engines know, and the way back from a call of one. */
import type { ToolChoice } from './canonical'
import { customFunction } from './custom-tools'
import type { Json } from './json/values'
import { arrayAt, compact, isObject } from './json/values'
import { hashText } from './session'

/** A tool under the names that the client gave it. */
export interface ClientTool {
  readonly kind: 'function' | 'custom'
  readonly name: string
  readonly namespace?: string
}

export interface Toolbox {
  /** In OpenAI's function form. */
  readonly functions: readonly Json[]
  /** The name of the function that stands for a tool. */
  functionOf(name: string, namespace?: string): string
  /** The tool that a function stands for. */
  toolOf(functionName: string): ClientTool
}

/** What strict servers allow in a function's name. */
const maxNameLength = 64
const forbidden = /[^A-Za-z0-9_-]/g
/** Hexadecimal digits that tell shortened names apart. */
const markLength = 8

const fullName = (name: string, namespace: string | undefined): string =>
  namespace === undefined ? name : `${namespace}__${name}`

const marked = (name: string, plain: string): string =>
  `${plain.slice(0, maxNameLength - markLength - 1)}_${hashText(name).slice(0, markLength)}`

const fitted = (name: string): string => {
  const plain = name.replace(forbidden, '_')
  return plain.length > maxNameLength ? marked(name, plain) : plain
}

const writeFunction = (tool: Json, name: string): Json =>
  tool.type === 'custom'
    ? customFunction(tool, name)
    : {
        type: 'function',
        function: compact({
          name,
          description: tool.description ?? undefined,
          parameters: tool.parameters ?? undefined,
          strict: tool.strict ?? undefined,
        }),
      }

interface Definition {
  readonly tool: Json
  readonly name: string
  readonly namespace?: string
}

/** Functions and custom tools, those of namespaces too. All others are run by a hosted service and left out. */
const definitions = (tools: readonly unknown[], namespace?: string): Definition[] =>
  tools.flatMap((tool): Definition[] => {
    if (!isObject(tool) || typeof tool.name !== 'string') return []
    if (tool.type === 'namespace') return definitions(Array.isArray(tool.tools) ? tool.tools : [], tool.name)
    if (tool.type !== 'function' && tool.type !== 'custom') return []
    return [{ tool, name: tool.name, ...(namespace !== undefined && { namespace }) }]
  })

export const createToolbox = (tools: readonly unknown[]): Toolbox => {
  const named = new Map<string, string>()
  const behind = new Map<string, ClientTool>()
  const functions: Json[] = []
  for (const { tool, name, namespace } of definitions(tools)) {
    const full = fullName(name, namespace)
    if (named.has(full)) continue
    const plain = fitted(full)
    const functionName = behind.has(plain) ? marked(full, plain) : plain
    const kind = tool.type === 'custom' ? 'custom' : 'function'
    named.set(full, functionName)
    behind.set(functionName, { kind, name, ...(namespace !== undefined && { namespace }) })
    functions.push(writeFunction(tool, functionName))
  }
  return {
    functions,
    functionOf(name, namespace) {
      const full = fullName(name, namespace)
      return named.get(full) ?? fitted(full)
    },
    toolOf: (functionName) => behind.get(functionName) ?? { kind: 'function', name: functionName },
  }
}

/** Undefined for a choice of a tool that is not there, such as a hosted one. */
export const readToolChoice = (choice: unknown, toolbox: Toolbox): ToolChoice | undefined => {
  if (toolbox.functions.length === 0) return undefined
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { kind: choice }
  if (!isObject(choice)) return undefined
  const isAllowed = choice.type === 'allowed_tools'
  const chosen = isAllowed ? arrayAt(choice, 'tools', 'tool_choice.tools') : [choice]
  const names = definitions(chosen).map(({ tool, name }) =>
    toolbox.functionOf(name, typeof tool.namespace === 'string' ? tool.namespace : undefined),
  )
  if (names.length === 0) return undefined
  return { kind: 'only', names, required: isAllowed ? choice.mode === 'required' : true }
}
