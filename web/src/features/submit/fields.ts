import { type JsonSchema, schemaDefaults } from '@/lib/defaults'
import { isTable } from '@/lib/toml'
import { type Path, valueAt } from '@/lib/tree'

/** A `pick` always has one of its options, a `choice` may be left open. */
type Kind = 'text' | 'number' | 'flag' | 'choice' | 'pick' | 'list' | 'json'

/** One value of the specification, as an input shows it. */
export interface FormField {
  /** Its place: ['algorithm', 'local', 'steps']. */
  path: Path
  kind: Kind
  /** The words that it may be; other values may be allowed too unless it is a choice. */
  options: string[]
  description: string
  unit: string | undefined
  required: boolean
  /** The default; null if the value is then unset. */
  usual: unknown
  /** Sibling fields that it replaces. */
  excludes: string[]
}

export interface FormGroup {
  path: Path
  description: string
  fields: FormField[]
  groups: FormGroup[]
}

/** The inputs of a table, and of those inside, in the order of the schema. */
export function groupOf(path: Path, schema: JsonSchema, description = '', root = schema): FormGroup {
  const defaults = schemaDefaults(schema, root)
  const fields: FormField[] = []
  const groups: FormGroup[] = []
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const inner = referred(property, root)
    const place = [...path, name]
    if (inner.properties !== undefined) groups.push(tableOf(place, inner, property, root))
    else fields.push(fieldOf(place, property, inner, schema.required?.includes(name) ?? false, defaults[name]))
  }
  return { path, description, fields, groups }
}

/** A table's own default takes precedence over its fields' defaults. */
function tableOf(path: Path, inner: JsonSchema, property: JsonSchema, root: JsonSchema): FormGroup {
  const group = groupOf(path, inner, property.description ?? inner.description ?? '', root)
  const own = isTable(property.default) ? property.default : {}
  const fields = group.fields.map((field) => {
    const usual = valueAt(own, field.path.slice(path.length))
    return usual === undefined ? field : { ...field, usual }
  })
  return { ...group, fields }
}

function fieldOf(path: Path, property: JsonSchema, inner: JsonSchema, required: boolean, usual: unknown): FormField {
  const kinds = alternatives(inner)
  return {
    path,
    kind: kindOf(kinds),
    options: kinds.flatMap(words),
    description: property.description ?? inner.description ?? '',
    unit: property.unit,
    required,
    usual: usual ?? null,
    excludes: property.excludes ?? [],
  }
}

function kindOf(kinds: JsonSchema[]): Kind {
  const types = kinds.map(({ type }) => type)
  if (types.includes('object')) return 'json'
  if (types.includes('array')) return 'list'
  if (kinds.length > 0 && kinds.every((kind) => words(kind).length > 0)) return 'choice'
  if (types.includes('boolean')) return 'flag'
  const numbers = types.every((type) => type === 'integer' || type === 'number')
  return numbers && types.length > 0 ? 'number' : 'text'
}

function alternatives(schema: JsonSchema): JsonSchema[] {
  return (schema.anyOf ?? [schema]).flatMap((kind) => (kind.anyOf ? alternatives(kind) : [kind])).filter(isNoNull)
}

function isNoNull({ type }: JsonSchema): boolean {
  return type !== 'null'
}

function words(schema: JsonSchema): string[] {
  return (schema.enum ?? [schema.const]).filter((word) => typeof word === 'string')
}

function referred(schema: JsonSchema, root: JsonSchema): JsonSchema {
  return schema.$ref === undefined ? schema : (root.$defs?.[schema.$ref.split('/').at(-1) ?? ''] ?? schema)
}

/** The text of a value in an input. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.every((item) => typeof item === 'string') ? value.join(', ') : json(value)
  return typeof value === 'string' ? value : json(value)
}

/** The value of a typed text. Text that cannot be parsed is sent unchanged, and the server reports the error. */
export function typed(text: string, field: Pick<FormField, 'kind' | 'options'>): unknown {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  switch (field.kind) {
    case 'number':
      return number(trimmed)
    case 'list':
      return trimmed.split(',').map((item) => item.trim())
    case 'json':
      return parsed(trimmed)
    case 'text':
      // Words, or a number in their place.
      return field.options.length > 0 && !field.options.includes(trimmed) ? number(trimmed) : text
    default:
      return trimmed
  }
}

/** A default value in words. */
export function usualText(value: unknown): string {
  if (value === null || value === undefined) return 'unset'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (isTable(value) && Object.keys(value).length === 0) return 'none'
  return shown(value)
}

/** A number that JavaScript cannot hold stays text, which the server reads exactly. */
function number(text: string): unknown {
  const value = Number(text)
  const whole = /^[+-]?\d+$/.test(text)
  return !Number.isFinite(value) || (whole && !Number.isSafeInteger(value)) ? text : value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function json(value: unknown): string {
  return JSON.stringify(value)
}
