import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { toProblem } from '@/api/problem'
import { eventsQuery } from '@/api/queries'
import { type Event, type Experiment, isFinished } from '@/api/types'
import { formatCount, formatTime } from '@/lib/format'
import { ProblemNotice } from '@/lib/ui/notice'
import { StateIcon, stateLook } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'

import { EVENT_KINDS, type EventKind, eventText, kindOf, shownEvents, verbOf } from './event-text'

/** As many are fetched at first, and with every press of the button: large experiments have very many. */
const STEP = 1000

interface Props {
  experiment: Experiment
  kinds: EventKind[]
  onKinds: (kinds: EventKind[]) => void
}

/** The experiment's events, the newest first. */
export function LogTab({ experiment, kinds, onKinds }: Props) {
  const [after, setAfter] = useState(() => Math.max(0, experiment.last_event_seq - STEP))
  const [text, setText] = useState('')
  const {
    data: events = [],
    error,
    isPending,
    isSuccess,
  } = useQuery({
    ...eventsQuery(experiment.id, after, !isFinished(experiment.state)),
    placeholderData: keepPreviousData,
  })
  const shown = shownEvents(events, kinds, text)
  return (
    <section aria-labelledby="events" data-testid="events">
      <header className="section-header">
        <h2 id="events">Events</h2>
        <span className="muted small" role="status">
          {isPending ? 'Loading…' : `${formatCount(shown.length)} of ${formatCount(events.length)} shown`}
        </span>
      </header>
      <div className="event-filter">
        <Kinds kinds={kinds} onKinds={onKinds} />
        <input
          type="search"
          aria-label="Filter by text"
          placeholder="Filter by text: site-a, round 7, non_finite"
          value={text}
          onChange={(event) => {
            setText(event.target.value)
          }}
        />
      </div>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {shown.length > 0 ? <EventTable events={shown} /> : isSuccess && <p className="muted">No event matches.</p>}
      {after > 0 && (
        <button
          type="button"
          className="button more"
          onClick={() => {
            setAfter(Math.max(0, after - STEP))
          }}
        >
          Show more of {formatCount(after)} earlier events
        </button>
      )}
    </section>
  )
}

function Kinds({ kinds, onKinds }: Omit<Props, 'experiment'>) {
  return (
    <div className="toggles" role="group" aria-label="Filter by kind">
      {EVENT_KINDS.map((kind) => {
        const pressed = kinds.includes(kind)
        return (
          <button
            key={kind}
            type="button"
            aria-pressed={pressed}
            onClick={() => {
              onKinds(pressed ? kinds.filter((other) => other !== kind) : [...kinds, kind])
            }}
          >
            {kind}
          </button>
        )
      })}
    </div>
  )
}

function EventTable({ events }: { events: Event[] }) {
  return (
    <div className="table-scroll tall" tabIndex={0} role="group" aria-label="Events">
      <table className="events">
        <TableHead columns={['Time', 'Round', 'Event', 'Details']} numbers={['Round']} />
        <tbody>
          {events.map((event) => (
            <tr key={event.seq}>
              <td className="nowrap">
                <time dateTime={event.time}>{formatTime(event.time)}</time>
              </td>
              <td className="number">{event.round ?? ''}</td>
              <td className="nowrap">
                <span className="event-type" data-look={stateLook(verbOf(event))}>
                  <StateIcon state={verbOf(event)} />
                  {kindOf(event)} {verbOf(event)}
                </span>
              </td>
              <td className="cell-detail">{eventText(event)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
