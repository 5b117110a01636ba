import { useInfiniteQuery } from '@tanstack/react-query'
import type { SubmitEvent } from 'react'

import { auditQuery } from '@/api/admin'
import { toProblem } from '@/api/problem'
import type { AuditEntry } from '@/api/types'
import { formatTime } from '@/lib/format'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { TableHead } from '@/lib/ui/table-head'

import type { AdminUrlState, ChangeAdminUrl } from './url-state'

interface Props {
  view: AdminUrlState
  onView: ChangeAdminUrl
}

const COLUMNS = ['Number', 'Time', 'Actor', 'Action', 'Subject', 'Detail']
const FILTERS = [
  ['actor', 'Actor', 'admin'],
  ['action', 'Action', 'user.changed'],
  ['subject', 'Subject', 'exp_…'],
] as const

/** The audit log, the newest entry first. */
export function AuditTab({ view, onView }: Props) {
  const { actor, action, subject } = view
  const list = useInfiniteQuery(auditQuery({ actor, action, subject }))
  const entries = list.data?.pages.flatMap((page) => page.items)
  return (
    <section aria-labelledby="audit">
      <header className="section-header">
        <h2 id="audit">Audit log</h2>
        <Filter key={[actor, action, subject].join()} view={view} onView={onView} />
      </header>
      {list.error && <ProblemNotice problem={toProblem(list.error)} />}
      {entries?.length === 0 && <p className="muted">No entry matches. Each filter is compared with the whole word.</p>}
      {entries && entries.length > 0 && <Entries entries={entries} onView={onView} />}
      <MoreButton list={list} />
    </section>
  )
}

function Filter({ view, onView }: Props) {
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    onView(Object.fromEntries(FILTERS.map(([name]) => [name, text(form.get(name))])))
  }
  return (
    <form className="audit-filter" onSubmit={submit}>
      {FILTERS.map(([name, label, example]) => (
        <input
          key={name}
          type="search"
          name={name}
          aria-label={label}
          placeholder={`${label}: ${example}`}
          defaultValue={view[name]}
        />
      ))}
      <button type="submit" className="button">
        Filter
      </button>
    </form>
  )
}

function text(value: FormDataEntryValue | null): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

function Entries({ entries, onView }: { entries: readonly AuditEntry[]; onView: ChangeAdminUrl }) {
  return (
    <div className="table-scroll tall" tabIndex={0} role="group" aria-label="Entries of the audit log">
      <table>
        <TableHead columns={COLUMNS} numbers={['Number']} />
        <tbody>
          {entries.map(({ number, time, actor, action, subject, detail, hash }) => (
            <tr key={number} data-testid="audit-row" title={`Hash ${hash}`}>
              <td className="number">{number}</td>
              <td className="nowrap">
                <time dateTime={time}>{formatTime(time)}</time>
              </td>
              <td>
                <Only name="actor" word={actor} onView={onView} />
              </td>
              <td>
                <Only name="action" word={action} onView={onView} />
              </td>
              <td>
                <Only name="subject" word={subject} onView={onView} />
              </td>
              <td className="audit-detail">{detailText(detail)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A word of an entry; a press shows only entries with it. */
function Only({ name, word, onView }: { name: 'actor' | 'action' | 'subject'; word: string; onView: ChangeAdminUrl }) {
  return (
    <button
      type="button"
      className="audit-word"
      title="Show only these"
      onClick={() => {
        onView({ [name]: word })
      }}
    >
      {word}
    </button>
  )
}

/** The detail of an entry of the audit log on one line: "name: ada, role: admin". */
export function detailText(detail: Record<string, unknown>): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}
