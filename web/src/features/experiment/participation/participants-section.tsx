import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import type { Experiment, Participant } from '@/api/types'
import type { ChangeExperimentUrl, ExperimentUrlState } from '@/features/experiment/url-state'
import { formatCount } from '@/lib/format'
import { useNow } from '@/lib/ui/relative-time'
import { VirtualTable } from '@/lib/ui/virtual-table'

import { ParticipantRow } from './participant-row'
import {
  type Column,
  COLUMNS,
  type Filter,
  FILTERS,
  type Order,
  participantSummaries,
  type ParticipantSummary,
  passes,
  sorted,
} from './participant-summary'
import type { Matrix } from './participation-matrix'

interface Props {
  experiment: Experiment
  matrix: Matrix
  participants: readonly Participant[]
  /** True once the matrix and the participants have loaded. */
  loaded: boolean
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
  onOpen: (name: string) => void
}

/** Milliseconds between two checks of who is online. */
const LOOK_MILLISECONDS = 10_000

/** All participants with their state, simulated ones included. */
export function ParticipantsSection({ experiment, matrix, participants, loaded, view, onView, onOpen }: Props) {
  const now = useNow(LOOK_MILLISECONDS)
  const [text, setText] = useState('')
  const mayDecide = onlyReads(useQuery(meQuery).data) === false
  const order = view.order ?? 'name'
  const everyone = useMemo(() => participantSummaries(matrix, participants, now), [matrix, participants, now])
  /** The rows while a dialog of one of them is open: a row that left the table would take the dialog with it. */
  const [held, setHeld] = useState<readonly ParticipantSummary[]>()
  const current = useMemo(
    () =>
      sorted(
        everyone.filter((summary) => isShown(summary, view.who, text)),
        order,
      ),
    [everyone, view.who, text, order],
  )
  const shown = held ?? current
  return (
    <section aria-labelledby="participants" data-testid="participants">
      <header className="section-header">
        <h2 id="participants">Participants</h2>
        <span className="muted small" role="status">
          {`${formatCount(shown.length)} of ${formatCount(everyone.length)} shown; ${asked(experiment)}${counted(experiment, matrix)}`}
        </span>
      </header>
      <div className="event-filter">
        <Filters everyone={everyone} chosen={view.who} onView={onView} />
        <input
          type="search"
          aria-label="Filter by name or group"
          placeholder="Filter by name or group"
          value={text}
          onChange={(event) => {
            setText(event.target.value)
          }}
        />
      </div>
      {shown.length === 0 ? (
        loaded && (
          <p className="muted">
            {everyone.length === 0 ? 'Nobody has joined yet, and no round has opened.' : 'No participant matches.'}
          </p>
        )
      ) : (
        <VirtualTable
          label="Participants"
          head={
            <ParticipantHead
              order={order}
              onOrder={(next) => {
                onView({ order: next === 'name' ? undefined : next })
              }}
            />
          }
          columns={COLUMNS.length + 1}
          count={shown.length}
          height={44}
          row={(index, place) => {
            const summary = shown[index]
            return (
              summary && (
                <ParticipantRow
                  key={summary.name}
                  id={experiment.id}
                  summary={summary}
                  place={place}
                  mayDecide={mayDecide}
                  now={now}
                  onOpen={onOpen}
                  onDialog={(open) => {
                    setHeld(open ? current : undefined)
                  }}
                />
              )
            )
          }}
        />
      )}
    </section>
  )
}

function isShown(summary: ParticipantSummary, who: Filter | undefined, text: string): boolean {
  if (who !== undefined && !passes(summary, who)) return false
  const { displayName, name, participant } = summary
  return [displayName, name, participant?.group ?? ''].some((word) => word.toLowerCase().includes(text.toLowerCase()))
}

function asked({ participants, spec }: Experiment): string {
  const { simulated } = spec.participants
  if (simulated === 0) return `edge participants required: ${formatCount(participants)}`
  return `${formatCount(simulated)} of ${formatCount(participants)} are simulated by the server`
}

/** The rounds that the numbers come from, unless these are all. */
function counted({ round }: Experiment, { rounds }: Matrix): string {
  const [first, last] = [rounds[0], rounds.at(-1)]
  if (first === undefined || last === undefined || (first === 1 && last >= round)) return ''
  return `; counted in rounds ${formatCount(first)} to ${formatCount(last)}`
}

interface FiltersProps {
  everyone: readonly ParticipantSummary[]
  chosen: Filter | undefined
  onView: ChangeExperimentUrl
}

function Filters({ everyone, chosen, onView }: FiltersProps) {
  return (
    <div className="toggles" role="group" aria-label="Show only">
      {FILTERS.map((filter) => (
        <button
          key={filter}
          type="button"
          aria-pressed={filter === chosen}
          onClick={() => {
            onView({ who: filter === chosen ? undefined : filter })
          }}
        >
          {filter} {formatCount(everyone.filter((summary) => passes(summary, filter)).length)}
        </button>
      ))}
    </div>
  )
}

const TITLES: Record<Column, string> = {
  name: 'Participant',
  last: 'Last round',
  accepted: 'Accepted',
  rejected: 'Rejected',
  missed: 'Missed',
  bytes: 'Sent',
  duration: 'Trained, mean',
  loss: 'Train loss',
  seen: 'Last seen',
}

const NUMBERS: readonly Column[] = ['last', 'accepted', 'rejected', 'missed', 'bytes', 'duration', 'loss']

interface ParticipantHeadProps {
  order: Order
  onOrder: (order: Order) => void
}

/** Column names that sort: numbers from the largest, names from the first; once more the other way. */
function ParticipantHead({ order, onOrder }: ParticipantHeadProps) {
  const [name, ...others] = COLUMNS
  const cell = (column: Column) => <Head key={column} column={column} order={order} onOrder={onOrder} />
  return (
    <thead>
      <tr>
        {cell(name)}
        <th scope="col">State</th>
        {others.map(cell)}
      </tr>
    </thead>
  )
}

function Head({ column, order, onOrder }: ParticipantHeadProps & { column: Column }) {
  const usual: Order = column === 'name' ? column : `-${column}`
  const other: Order = column === 'name' ? `-${column}` : column
  const chosen = order === usual || order === other
  const descending = order.startsWith('-')
  return (
    <th
      scope="col"
      className={NUMBERS.includes(column) ? 'number' : undefined}
      aria-sort={chosen ? (descending ? 'descending' : 'ascending') : undefined}
    >
      <button
        type="button"
        className="sort-button"
        onClick={() => {
          onOrder(order === usual ? other : usual)
        }}
      >
        {TITLES[column]}
        <span aria-hidden>{chosen ? (descending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  )
}
