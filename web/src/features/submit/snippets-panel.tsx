import { toToml } from '@/lib/toml'
import type { Tree } from '@/lib/tree'
import { Command } from '@/lib/ui/copy-button'
import { Toggles } from '@/lib/ui/toggles'

import { commandLine, python } from './snippets'
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
