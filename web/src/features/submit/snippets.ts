import { inline, isTable, key } from '@/lib/toml'
import type { Tree } from '@/lib/tree'

/** The input of a snippet. `original` is the id of the experiment that is cloned. */
interface Wanted {
  /** The specification, or with an original the JSON Merge Patch of it. */
  values: Tree
  original?: string | undefined
  project?: string | undefined
}

/** For a POSIX shell. */
export function commandLine({ values, original, project }: Wanted): string {
  const command = original === undefined ? 'ferret submit' : `ferret experiment clone ${original}`
  const where = project === undefined ? [] : [`--project ${quoted(project)}`]
  return [command, ...where, ...options(values)].join(' \\\n  ')
}

export function python({ values, original, project }: Wanted): string {
  const call = original === undefined ? 'Service().submit' : `Service().experiment(${JSON.stringify(original)}).clone`
  const where = project === undefined ? '' : `, project=${JSON.stringify(project)}`
  return `from ferret_sdk import Service\n\nrun = ${call}(${literal(values, '')}${where})\nprint(run.id)`
}

/** The options of a command. A name with a dot cannot be part of `a.b=VALUE`, so its table is given as one value. */
function options(values: Tree, path: string[] = []): string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const place = [...path, name]
    if (value === null) return [`--unset ${quoted(place.join('.'))}`]
    if (isTable(value) && isPlain(value)) return options(value, place)
    return [`--set ${quoted(`${place.join('.')}=${inline(value)}`)}`]
  })
}

function isPlain(table: Tree): boolean {
  const names = Object.keys(table)
  return names.length > 0 && names.every((name) => key(name) === name)
}

function quoted(text: string): string {
  return /^[\w./:@,+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

function literal(value: unknown, indent: string): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map((item) => literal(item, indent)).join(', ')}]`
  if (!isTable(value)) return JSON.stringify(value)
  const inner = `${indent}    `
  const lines = Object.entries(value).map(
    ([name, below]) => `${inner}${JSON.stringify(name)}: ${literal(below, inner)},`,
  )
  return lines.length === 0 ? '{}' : `{\n${lines.join('\n')}\n${indent}}`
}
