import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { experimentSearchQuery } from '@/api/experiment-list'
import { toProblem } from '@/api/problem'
import { formatAgo } from '@/lib/format'
import { ProblemNotice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'

interface Props {
  /** Runs already in the comparison. */
  taken: readonly string[]
  open?: boolean
  onAdd: (id: string) => void
}

/** Finds experiments by name and adds them one by one. */
export function AddRun({ taken, open: opened = false, onAdd }: Props) {
  const [open, setOpen] = useState(opened)
  const [name, setName] = useState('')
  const found = useQuery({ ...experimentSearchQuery(name), enabled: open, placeholderData: keepPreviousData })
  const now = useNow(60_000)
  const offered = found.data?.items.filter(({ id }) => !taken.includes(id)) ?? []
  return (
    <details
      className="add-run"
      open={open}
      onToggle={(event) => {
        setOpen(event.currentTarget.open)
      }}
    >
      <summary className="button">Compare with…</summary>
      <div className="add-run-box">
        <input
          type="search"
          aria-label="Find by name"
          placeholder="Find by name"
          value={name}
          onChange={(event) => {
            setName(event.target.value)
          }}
        />
        {found.error && <ProblemNotice problem={toProblem(found.error)} />}
        {found.isSuccess && offered.length === 0 && <p className="muted small">No other experiment matches.</p>}
        <ul>
          {offered.map(({ id, name: title, algorithm, state, created_at: created }) => (
            <li key={id}>
              <button
                type="button"
                className="button quiet"
                onClick={() => {
                  onAdd(id)
                }}
              >
                {title}
                <span className="muted small">
                  {algorithm} · {state} · {formatAgo(created, now)}
                </span>
              </button>
            </li>
          ))}
        </ul>
      </div>
    </details>
  )
}
