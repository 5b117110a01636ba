import { useId, useState } from 'react'

import { parseQuery, queryText } from './query'
import { type ChangeExperimentListUrl, type ExperimentListUrlState, filtersOf } from './url-state'

/**
 * All filters as one line of text. The address holds the filters; the text stays as typed while it means the same. The
 * address follows a moment later, so while somebody types, filters that the field itself has caused do not change it.
 */
export function QueryField({ view, onView }: { view: ExperimentListUrlState; onView: ChangeExperimentListUrl }) {
  const [typed, setTyped] = useState('')
  const [caused, setCaused] = useState<string[]>([])
  const hint = useId()
  const { filters, unknown } = parseQuery(typed)
  const now = JSON.stringify(filtersOf(view))
  const text = now === JSON.stringify(filters) || caused.includes(now) ? typed : queryText(view)
  const wrong = text === typed ? unknown : []
  return (
    <div className="query-field">
      <input
        type="search"
        aria-label="Filter experiments"
        aria-describedby={hint}
        placeholder="Filter: words of a name, loss<2, tag:hearts"
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={({ target: { value } }) => {
          const next = parseQuery(value).filters
          setTyped(value)
          setCaused([...caused, now, JSON.stringify(next)])
          onView((before) => ({ ...before, ...next }))
        }}
        onBlur={() => {
          setCaused([])
        }}
      />
      <p id={hint} className="query-hint muted small">
        {wrong.length > 0 ? (
          <strong>Not a filter: {wrong.join(', ')}.</strong>
        ) : (
          <>
            Words of a name, <code>state:running</code> <code>algorithm:ferret</code> <code>data:jsonl</code>{' '}
            <code>project:lab</code> <code>tag:"K search"</code> <code>is:stalled</code> <code>is:archived</code>{' '}
            <code>loss&lt;2</code> <code>rouge&gt;30</code> <code>K&gt;=4096</code> <code>rate&lt;0.01</code>{' '}
            <code>rounds&gt;5</code>
          </>
        )}
      </p>
    </div>
  )
}
