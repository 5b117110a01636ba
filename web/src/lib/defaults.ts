import { isTable } from './toml'

type Table = Record<string, unknown>

/** The parts of a JSON Schema that define allowed values and defaults. */
export interface JsonSchema {
  default?: unknown
  $ref?: string
  properties?: Record<string, JsonSchema>
  $defs?: Record<string, JsonSchema>
  type?: string
  enum?: unknown[]
  const?: unknown
  anyOf?: JsonSchema[]
  description?: string
  required?: string[]
  /** The unit of a number. */
  unit?: string
  /** Sibling options that it replaces. */
  excludes?: string[]
}

/** Every default of the schema's properties, including nested tables. */
export function schemaDefaults(schema: JsonSchema | undefined, root = schema): Table {
  return Object.fromEntries(
    Object.entries(schema?.properties ?? {}).flatMap(([name, property]) => {
      const inner = root?.$defs?.[property.$ref?.split('/').at(-1) ?? '']
      if (inner?.properties === undefined) return 'default' in property ? [[name, property.default]] : []
      return [[name, { ...schemaDefaults(inner, root), ...(isTable(property.default) ? property.default : {}) }]]
    }),
  )
}

/** The values that differ from the defaults, without tables that are then empty. */
export function withoutDefaults(values: Table, defaults: Table): Table {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      const usual = defaults[name]
      if (!isTable(value)) return same(value, usual) ? [] : [[name, value]]
      const left = withoutDefaults(value, isTable(usual) ? usual : {})
      return Object.keys(left).length > 0 ? [[name, left]] : []
    }),
  )
}

function same(value: unknown, usual: unknown): boolean {
  return JSON.stringify(value ?? null) === JSON.stringify(usual ?? null)
}
