import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'

import { timelineQuery } from '@/api/participation-matrix'
import { toProblem } from '@/api/problem'
import type { ParticipantRound } from '@/api/types'
import { formatBytes, formatSeconds, formatTime, secondsBetween } from '@/lib/format'
import { formatMetric } from '@/lib/metrics'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { SiteName } from '@/lib/ui/site-name'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'

interface Props {
  id: string
  participant: string
  /** The round that is marked and scrolled to. */
  round: number | undefined
  onClose: () => void
}

const COLUMNS = ['Round', 'Outcome', 'Assigned', 'Arrived after', 'Trained', 'Sent', 'Train loss']
const NUMBERS = COLUMNS.slice(3)

/** All rounds of one participant, in a drawer at the side of the page. */
export function TimelineDrawer({ id, participant, round, onClose }: Props) {
  const query = useInfiniteQuery(timelineQuery(id, participant))
  const dialog = useRef<HTMLDialogElement>(null)
  const parts = query.data?.pages.flatMap((page) => page.items) ?? []
  const name = parts[0]?.display_name ?? participant
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  const loaded = parts.length > 0
  useEffect(() => {
    if (loaded) dialog.current?.querySelector('[data-selected=true]')?.scrollIntoView({ block: 'center' })
  }, [loaded])
  return (
    <dialog
      ref={dialog}
      className="drawer"
      aria-labelledby="timeline"
      data-testid="timeline"
      onClose={onClose}
      onClick={(event) => {
        if (event.target === event.currentTarget) event.currentTarget.close()
      }}
    >
      <div className="drawer-content">
        <header className="section-header">
          <h2 id="timeline">
            <SiteName name={name} id={participant} />
          </h2>
          <button type="button" className="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </header>
        {query.error && <ProblemNotice problem={toProblem(query.error)} />}
        {query.isPending && <p className="muted">Loading…</p>}
        {query.isSuccess && parts.length === 0 && (
          <p className="muted">This participant has not been selected for a round yet.</p>
        )}
        {loaded && (
          <div className="table-scroll" tabIndex={0} role="group" aria-label="Rounds of the participant">
            <table>
              <TableHead columns={COLUMNS} numbers={NUMBERS} />
              <tbody>
                {parts.map((part) => (
                  <PartRow key={`${part.round} ${part.attempt}`} id={id} part={part} selected={part.round === round} />
                ))}
              </tbody>
            </table>
          </div>
        )}
        <MoreButton list={query} />
      </div>
    </dialog>
  )
}

function PartRow({ id, part, selected }: { id: string; part: ParticipantRound; selected: boolean }) {
  const { round, attempt, created_at: asked, opened_at: opened, arrived_at: arrived, seconds, size, metrics } = part
  return (
    <tr data-selected={selected}>
      <th scope="row">
        <Link to="/experiments/$id" params={{ id }} search={{ tab: 'rounds', round }}>
          {round}
        </Link>
        {attempt > 1 && <span className="muted small"> attempt {attempt}</span>}
      </th>
      <td>
        <Outcome part={part} />
      </td>
      <td className="nowrap">
        <time dateTime={asked}>{formatTime(asked)}</time>
      </td>
      <td className="number">{arrived === null ? '–' : formatSeconds(secondsBetween(opened, arrived))}</td>
      <td className="number">{seconds ? formatSeconds(seconds) : '–'}</td>
      <td className="number">{size === null ? '–' : formatBytes(size)}</td>
      <td className="number">
        {part.error?.code.endsWith('.non_finite') ? 'not a number' : formatMetric('train_loss', metrics.train_loss)}
      </td>
    </tr>
  )
}

function Outcome({ part: { state, round_state: roundState, factor, error, refused } }: { part: ParticipantRound }) {
  return (
    <>
      <StateChip state={state} />
      {roundState === 'abandoned' && <span className="muted small"> the attempt was abandoned</span>}
      {factor !== null && (
        <span className="muted small"> clipped to {(100 * factor).toPrecision(3)} % of its norm</span>
      )}
      {error && (
        <span className="row-error">
          {error.title}: {error.detail}
        </span>
      )}
      {refused.map(({ code, detail, count }) => (
        <span key={code} className="row-error">
          {count > 1 ? `${count} uploads` : 'An upload'} refused, <code>{code}</code>: {detail}
        </span>
      ))}
    </>
  )
}
