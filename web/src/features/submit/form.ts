import type { CatalogEntry } from '@/api/types'
import type { JsonSchema } from '@/lib/defaults'
import { isTable } from '@/lib/toml'
import { type Tree, valueAt, withValue } from '@/lib/tree'

import { type FormField, type FormGroup, groupOf } from './fields'

/** The sections that choose by name what the catalog has. */
const CHOICES = { algorithm: 'algorithms', dataset: 'datasets', partition: 'partitions' } as const
type Choosing = keyof typeof CHOICES

/** What a choice is about, before it is made. */
const UNCHOSEN: Partial<Record<Choosing, string>> = { dataset: 'JSON Lines of your own (jsonl), or a known data set' }

export interface Catalog {
  specification: JsonSchema
  entries: Record<Choosing, CatalogEntry[]>
}

export function isChoosing(section: string): section is Choosing {
  return section in CHOICES
}

/** All inputs for a specification; the options depend on its choices. */
export function formOf({ specification, entries }: Catalog, spec: Tree): FormGroup {
  const form = groupOf([], specification)
  return { ...form, groups: form.groups.map((group) => chosenGroup(group, specification, entries, spec)) }
}

function chosenGroup(group: FormGroup, specification: JsonSchema, entries: Catalog['entries'], spec: Tree): FormGroup {
  const [section = ''] = group.path
  const [name] = group.fields
  if (!isChoosing(section) || name === undefined) return group
  const usual = usualName(specification, section)
  const chosen = valueAt(spec, [section, 'name']) ?? usual
  const entry = entries[section].find((candidate) => candidate.name === chosen)
  const options = groupOf([section], entry?.schema ?? {})
  const choice: FormField = {
    ...name,
    kind: usual === null ? 'choice' : 'pick',
    options: entries[section].map((candidate) => candidate.name),
    usual,
    required: usual === null,
    description: entry?.title ?? UNCHOSEN[section] ?? name.description,
  }
  return { ...group, fields: [choice, ...options.fields], groups: options.groups }
}

/** The default choice of a section; null if a choice is required. */
function usualName(specification: JsonSchema, section: string): unknown {
  return valueAt(specification.properties?.[section]?.default, ['name']) ?? null
}

/** Options need the name of what they belong to: with it wherever they are set, without it where nothing else is. */
export function named(specification: JsonSchema, spec: Tree): Tree {
  return Object.keys(CHOICES).reduce((tree, section) => {
    const usual = usualName(specification, section)
    const table = tree[section]
    if (usual === null || !isTable(table)) return tree
    const { name = usual, ...options } = table
    const plain = name === usual && Object.keys(options).length === 0
    return withValue(tree, [section], plain ? undefined : { name, ...options })
  }, spec)
}

export function allFields(group: FormGroup): FormField[] {
  return [...group.fields, ...group.groups.flatMap(allFields)]
}

/** The dotted names of all inputs and tables. */
export function placesOf(group: FormGroup): Set<string> {
  const own = group.path.length > 0 ? [group.path.join('.')] : []
  const fields = group.fields.map(({ path }) => path.join('.'))
  return new Set([...own, ...fields, ...group.groups.flatMap((inner) => [...placesOf(inner)])])
}

/** The first fields of the form, with their names in plain words. */
const BASICS = [
  ['name', 'Name'],
  ['model.source', 'Model'],
  ['dataset.name', 'Data'],
  ['participants.simulated', 'Simulated participants'],
  ['algorithm.bytes_per_round', 'Bytes per round'],
  ['rounds', 'Rounds'],
] as const

export interface BasicField {
  label: string
  field: FormField
}

/** The fields that nearly every experiment sets, then what the chosen data requires, such as a file. */
export function basicFields(form: FormGroup): BasicField[] {
  const fields = new Map(allFields(form).map((field) => [field.path.join('.'), field]))
  return BASICS.flatMap(([path, label]) => {
    const field = fields.get(path)
    const more = path === 'dataset.name' ? requiredOptions(form, 'dataset') : []
    return field === undefined ? [] : [{ label, field }, ...more]
  })
}

function requiredOptions(form: FormGroup, section: string): BasicField[] {
  const [choice, ...options] = form.groups.find(({ path }) => path.join('.') === section)?.fields ?? []
  if (choice === undefined) return []
  return options
    .filter(({ required }) => required)
    .map((field) => ({ label: `Data: ${field.path.at(-1) ?? ''}`, field }))
}

/** The form without the basic fields, and without groups that have no other. */
export function advancedOf(form: FormGroup, basics: readonly BasicField[]): FormGroup {
  const taken = new Set(basics.map(({ field }) => field.path.join('.')))
  const without = (group: FormGroup): FormGroup => ({
    ...group,
    fields: group.fields.filter(({ path }) => !taken.has(path.join('.'))),
    groups: group.groups.map(without).filter(({ fields, groups }) => fields.length + groups.length > 0),
  })
  return without(form)
}
