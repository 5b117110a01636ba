import { inline, isTable, key, toToml } from '@/lib/toml'
import type { Tree } from '@/lib/tree'
import { Command } from '@/lib/ui/copy-button'
import { Toggles } from '@/lib/ui/toggles'

import type { Snippet } from './url-state'

interface Props {
  spec: Tree
  /** Id of the original with the change that makes the copy, which the server has worked out. */
  original: { id: string; change: Tree } | undefined
  project: string | undefined
  chosen: Snippet
  onChoose: (snippet: Snippet) => void
}

/** The same experiment for a file, a terminal and a notebook. */
export function SnippetsPanel({ spec, original, project, chosen, onChoose }: Props) {
  const wanted = { values: original?.change ?? spec, original: original?.id, project }
  const text = { toml: () => toToml(spec), cli: () => commandLine(wanted), python: () => python(wanted) }[chosen]()
  return (
    <section aria-labelledby="same" className="spec-panel" data-testid="snippets">
      <h2 id="same">Use it elsewhere</h2>
      <Toggles
        label="Written as"
        options={[
          ['toml', 'TOML'],
          ['cli', 'Command'],
          ['python', 'Python'],
        ]}
        chosen={chosen}
        onChoose={onChoose}
      />
      {text === '' ? (
        <p className="muted small">Nothing is chosen yet.</p>
      ) : (
        <Command text={text} label={{ toml: 'TOML', cli: 'command', python: 'Python' }[chosen]} />
      )}
      {chosen !== 'toml' && (
        <p className="muted small">
          This works on the server as it is. On another machine, set <code>FERRET_URL</code> and{' '}
          <code>FERRET_TOKEN</code> first.
        </p>
      )}
    </section>
  )
}

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
